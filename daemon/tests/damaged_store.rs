//! The seeds of the fuzz target `store`, on every toolchain.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../../fuzz/seeds.rs"]
mod seeds;
#[path = "../../fuzz/store.rs"]
mod store;

#[test]
fn seeds_of_damage() {
    seeds::each_seed("store", store::store);
}
