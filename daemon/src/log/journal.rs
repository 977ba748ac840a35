//! systemd's journal.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use touchmark_proto::native;
use tracing_journald::{Layer, Priority, PriorityMappings};

/// Returns whether a descriptor is the stream that was named by device and
/// inode. The check is needed since processes that a service starts inherit the
/// variable, but perhaps not its standard error.
pub(super) fn is_stream(descriptor: impl AsFd, stream: &str) -> bool {
    rustix::fs::fstat(descriptor)
        .is_ok_and(|found| format!("{}:{}", found.st_dev, found.st_ino) == stream)
}

/// Returns the journal's layer. Each line has the field `TOUCHMARK_WORKSPACE`;
/// `TOUCHMARK_SESSION`, `TOUCHMARK_PATH` and so on are set where a line is
/// about one.
pub(super) fn layer(workspace: &Path) -> io::Result<Layer> {
    let layer = tracing_journald::layer()?
        .with_syslog_identifier("touchmark".into())
        .with_field_prefix(Some("TOUCHMARK".into()))
        .with_custom_fields([("TOUCHMARK_WORKSPACE", native::bytes(workspace))])
        .with_priority_mappings(PriorityMappings {
            info: Priority::Informational,
            debug: Priority::Debug,
            ..PriorityMappings::new()
        });
    Ok(layer)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn the_journal_is_known_by_device_and_inode() {
        let directory = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(directory.path().join("a")).unwrap();
        let found = file.metadata().unwrap();
        assert!(is_stream(
            &file,
            &format!("{}:{}", found.dev(), found.ino())
        ));
        for other in [
            String::new(),
            format!("{}:{}", found.dev(), found.ino() + 1),
        ] {
            assert!(!is_stream(&file, &other), "{other}");
        }
    }
}
