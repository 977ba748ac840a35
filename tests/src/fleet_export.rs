//! A fleet: many daemons with scripted agents, which export to a collector.
//!
//! - [`script`]: what agents and users do in one workspace.
//! - [`ledger`]: what they did, as the questions of examples/fleet/README.md ask it.
//! - [`line`]: the collector, what is around it, and what happens to it.
//! - [`instances`]: how many daemons can watch.
//! - [`load`]: what a process costs.
//! - [`page`]: the statements and the dashboard of examples/fleet/README.md.

pub mod instances;
pub mod ledger;
pub mod line;
pub mod load;
pub mod page;
pub mod script;
