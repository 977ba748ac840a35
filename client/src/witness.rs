//! The witness above a process, as its environment names it (ATTR-3).

use std::path::Path;

use touchmark_proto::Places;

/// The variable in which a witnessed command and its children find the ring of
/// the window whose witness sees them.
pub const WITNESS_VARIABLE: &str = "TOUCHMARK_WITNESS";

/// Returns the command window whose witness sees this process, such as `c5`.
/// `None` if there is none, or if it is another workspace's.
pub fn witnessed_by(places: &Places) -> Option<String> {
    let ring = std::env::var_os(WITNESS_VARIABLE)?;
    let command = Path::new(&ring).file_name()?.to_str()?;
    (places.ring(command) == Path::new(&ring)).then(|| command.to_owned())
}
