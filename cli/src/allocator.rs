//! The allocator of the program on Linux. The C library's keeps what a storm of
//! changes or a large search took: jemalloc gives it back within a second.
//!
//! `.cargo/config.toml` sets the number of arenas, and how long freed memory is
//! kept.

use tikv_jemalloc_ctl::background_thread;
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Gives freed memory back also while the program allocates nothing: by a
/// thread that sleeps while there is nothing to give back. Other commands than
/// the daemon end too soon to need it.
pub(crate) fn give_back_when_idle() {
    // Where jemalloc has no such thread, it gives back with later allocations.
    let _without = background_thread::write(true);
}
