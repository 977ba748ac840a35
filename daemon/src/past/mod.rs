//! What earlier contents of files mean: to which file a name belonged
//! ([`lineage`]).

pub(crate) mod lineage;
mod look;
mod search;

pub(crate) use lineage::Lineage;
pub(crate) use look::Lineages;
