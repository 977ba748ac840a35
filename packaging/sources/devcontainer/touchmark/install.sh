#!/bin/sh
# Installs touchmark into a container. Dev container tools run it as root, with
# the feature's options as variables.
set -eu

version=${VERSION:-latest}
# The publisher writes the URL of the releases here: see CONTRIBUTING.md, "Releasing".
publisher=
source=${SOURCE:-$publisher}

fail() { echo "touchmark: $*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || fail "it runs on Linux only"
architecture=$(uname -m)
case $architecture in
    x86_64 | aarch64) ;;
    arm64) architecture=aarch64 ;;
    *) fail "there is no program for $architecture: x86_64 or aarch64" ;;
esac
[ -n "$source" ] || fail "nothing is published yet: set the option \"source\" to a directory that packaging/release made"

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# fetch NAME: a file of the release, into the temporary directory.
fetch() {
    case $source in
        http://* | https://*)
            if command -v curl > /dev/null; then curl -fsSL -o "$temporary/$1" "$source/$1"
            elif command -v wget > /dev/null; then wget -qO "$temporary/$1" "$source/$1"
            else fail "install curl or wget, or the feature common-utils"
            fi ;;
        *) cp "$source/$1" "$temporary/$1" ;;
    esac || fail "cannot read $source/$1"
}

fetch SHA256SUMS
if [ "$version" = latest ]; then version='[0-9][^-]*'; fi
line=$(grep -E "  touchmark-$version-$architecture-linux\.tar\.gz\$" "$temporary/SHA256SUMS" | tail -n 1)
[ -n "$line" ] || fail "$source has no release $version for $architecture"
archive=${line#*  }
fetch "$archive"
(cd "$temporary" && echo "$line" | sha256sum -c - > /dev/null 2>&1) || fail "$archive is not what SHA256SUMS says"

tar -xzf "$temporary/$archive" -C "$temporary"
tree=$temporary/${archive%.tar.gz}
mkdir -p /usr/local/bin /usr/local/share
cp "$tree"/bin/* /usr/local/bin/
cp -r "$tree/share/." /usr/local/share/
touchmark=$(/usr/local/bin/touchmark --version) || fail "the program does not run here"
echo "installed $touchmark"
