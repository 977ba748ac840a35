//! The seeds of the fuzz targets `settings` and `ignored`, on every toolchain.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../../fuzz/ignored.rs"]
mod ignored;
#[path = "../../fuzz/seeds.rs"]
mod seeds;
#[path = "../../fuzz/settings.rs"]
mod settings;

#[test]
fn settings_seeds() {
    seeds::each_seed("settings", settings::settings);
}

#[test]
fn ignored_seeds() {
    seeds::each_seed("ignored", ignored::ignored);
}
