//! Used where the limits of watching are different or not reported.

use super::{Finding, unknown};

pub(super) fn watches() -> Finding {
    unknown("watches")
}

pub(super) fn instances() -> Finding {
    unknown("watch instances")
}

pub(super) fn queue() -> Finding {
    unknown("event queue")
}
