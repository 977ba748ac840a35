//! Which witness sees a process.

use std::path::Path;

use touchmark_proto::Places;
use touchmark_proto::places::WITNESS_VARIABLE;

use crate::system::proc;

/// Returns the name of the witness that sees a process, from its environment and
/// those of the processes above it: an agent may give its hooks another one.
/// `None` if there is none, or if it is another workspace's.
pub(crate) fn above(process: u32, places: &Places) -> Option<String> {
    let above = proc::and_above(process).into_iter();
    above.into_iter().find_map(|one| {
        let ring = proc::variable(one.pid, WITNESS_VARIABLE)?;
        places.witness(Path::new(&ring))
    })
}
