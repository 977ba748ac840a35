//! Requests in general: how they wait, and how many may pile up.

pub(crate) mod limits;
pub(crate) mod queue;
