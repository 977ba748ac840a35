//! systemd's journal.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use touchmark_proto::native;
use tracing_journald::{Layer, Priority, PriorityMappings};

/// Whether a descriptor is the stream that was named as device and inode. The
/// variable is handed on to whatever a service starts, its standard error not.
pub(super) fn is_stream(descriptor: impl AsFd, stream: &str) -> bool {
    rustix::fs::fstat(descriptor)
        .is_ok_and(|found| format!("{}:{}", found.st_dev, found.st_ino) == stream)
}

/// The journal, with fields: `TOUCHMARK_WORKSPACE` on each line,
/// `TOUCHMARK_SESSION`, `TOUCHMARK_PATH` and so on where a line is about one.
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
