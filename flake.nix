# `nix run .#touchmark -- demo`, `nix profile install .#touchmark`.
{
  description = "Tells AI coding agents which of their file copies are out of date, and who changed what";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: rec {
        default = touchmark;
        touchmark = pkgs.callPackage ./packaging/sources/nix/package.nix { source = self; };
      });
    };
}
