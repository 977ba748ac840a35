# The command, its manual pages and completions. The tests are run by
# tests/run: they drive daemons and real editors, which a build must not.
{ lib, rustPlatform, installShellFiles, source }:

rustPlatform.buildRustPackage {
  pname = "touchmark";
  version = (lib.importTOML (source + "/Cargo.toml")).workspace.package.version;
  src = source;

  cargoLock.lockFile = source + "/Cargo.lock";
  cargoBuildFlags = [ "--package" "touchmark-cli" ];
  doCheck = false;

  nativeBuildInputs = [ installShellFiles ];
  postInstall = ''
    $out/bin/touchmark man --dir man
    installManPage man/*
    for shell in bash zsh fish; do
      $out/bin/touchmark completions $shell > touchmark.$shell
    done
    installShellCompletion touchmark.bash touchmark.zsh touchmark.fish
  '';

  meta = {
    description = "Tells AI coding agents which of their file copies are out of date";
    license = with lib.licenses; [ mit asl20 ];
    mainProgram = "touchmark";
    platforms = lib.platforms.linux;
  };
}
