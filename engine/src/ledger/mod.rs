//! Facts, the state that results from folding them, and how both are stored.

pub(crate) mod fact_parts;
pub(crate) mod fold;
pub mod holdings;
pub mod knowledge;
pub(crate) mod labels;
pub mod names;
pub mod recall;
pub mod record;
pub(crate) mod refusals;
pub(crate) mod seen;
pub mod session_memory;
pub(crate) mod similarity;
pub mod state;
pub mod stored;
pub mod wire_names;
