//! The address of a repository's origin, in one form for all ways to write it.

/// Returns the address of the remote `origin`, as git's configuration has it.
pub(super) fn origin(config: &str) -> Option<String> {
    let mut inside = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.split(']').next().unwrap_or_default().trim();
            let (name, sub) = section.split_once([' ', '\t']).unwrap_or((section, ""));
            inside = name.eq_ignore_ascii_case("remote") && sub.trim() == "\"origin\"";
        } else if inside
            && let Some((key, value)) = line.split_once('=')
            && key.trim().eq_ignore_ascii_case("url")
        {
            let value = value.trim();
            let value = value.strip_prefix('"').unwrap_or(value);
            let value = value.strip_suffix('"').unwrap_or(value);
            // Git fetches from the first address.
            found.get_or_insert_with(|| value.to_owned());
        }
    }
    found.filter(|value| !value.is_empty())
}

/// Returns `host/path` of an address, without user, password, usual port and
/// `.git`. `None` for one on this machine.
pub(super) fn normalised(address: &str) -> Option<String> {
    let (host, path) = match address.split_once("://") {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => return None,
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/')?;
            let usual = match scheme.to_ascii_lowercase().as_str() {
                "https" => ":443",
                "http" => ":80",
                "git" => ":9418",
                _ => ":22",
            };
            let host = authority.rsplit('@').next().unwrap_or(authority);
            (host.strip_suffix(usual).unwrap_or(host), path)
        }
        // `user@host:path`. A path on this machine has a slash before the
        // colon, or no colon.
        None => {
            let (before, path) = address.split_once(':')?;
            if before.contains('/') {
                return None;
            }
            (before.rsplit('@').next().unwrap_or(before), path)
        }
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let path = path.trim_end_matches('/');
    if host.is_empty() || path.is_empty() {
        return None;
    }
    Some(format!("{}/{path}", host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_address() {
        for address in [
            "https://example.com/a/b",
            "https://example.com/a/b.git",
            "https://user:secret@Example.com:443/a/b.git/",
            "ssh://git@example.com:22/a/b.git",
            "git@example.com:a/b.git",
            "example.com:/a/b",
            "git://example.com/a/b",
        ] {
            assert_eq!(
                normalised(address).as_deref(),
                Some("example.com/a/b"),
                "{address}"
            );
        }
        assert_eq!(
            normalised("ssh://git@example.com:2222/a").as_deref(),
            Some("example.com:2222/a")
        );
        for address in [
            "/srv/a.git",
            "../a",
            "file:///srv/a",
            "./a:b",
            "https://x",
            "",
        ] {
            assert_eq!(normalised(address), None, "{address}");
        }
    }

    #[test]
    fn the_origin_is_found_among_other_sections() {
        let config = "[core]\n\turl = wrong\n[remote \"up\"]\nurl = up\n\
                      [Remote \"origin\"]\n\tfetch = +refs/*\n\tURL = \"https://a/b\"\nurl = c\n\
                      [branch \"main\"]\n\turl = wrong\n";
        assert_eq!(origin(config).as_deref(), Some("https://a/b"));
        assert_eq!(origin("[remote \"origin\"]\nfetch = x\n"), None);
    }
}
