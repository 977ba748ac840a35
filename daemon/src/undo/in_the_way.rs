//! Files that an undo leaves as they are, since something else stands in their
//! way: a symbolic link (UNDO-6).

use touchmark_proto::FileMode;

use super::Undoer;
use super::plan::Plan;

/// Leaves the files as they are that would be written through a symlink that was
/// not there. The write checks it again. A link above a file does not count if
/// the same undo removes it.
pub(super) fn leave_behind_links(plans: &mut [Plan], undoer: &Undoer) {
    for at in 0..plans.len() {
        let plan = &plans[at];
        let is_removed = |other: &Plan| plan.path.below(&other.path).is_some();
        if !plan.writes()
            || plan.was.is_some_and(FileMode::is_link)
            || plans
                .iter()
                .any(|other| other.removes_link() && is_removed(other))
        {
            continue;
        }
        if let Err(error) = undoer.replacer.check(&plan.name())
            && error.data.file_type.as_deref() == Some("symlink")
        {
            plans[at].keep(&error.message);
        }
    }
}
