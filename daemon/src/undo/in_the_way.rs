//! Files that an undo leaves as they are, since something else stands in their
//! way: a symbolic link (UNDO-6), another owner (UNDO-4), or a merge (UNDO-10).

use touchmark_proto::RelPath;
use touchmark_proto::undo::{LeftCause, UndoLeft, UndoOutcome};

use super::Undoer;
use super::plan::{Plan, is_link};
use crate::context::aside;
use crate::past::unmerged::Unmerged;

/// Leaves the files as they are in whose way something stands. All files of the
/// undo have to be planned.
pub(super) async fn leave(plans: &mut [Plan], undoer: &Undoer) {
    leave_behind_links(plans, undoer);
    leave_of_others(plans, undoer).await;
    leave_unmerged(plans, undoer).await;
}

/// Leaves the files as they are that would be written through a symlink that was
/// not there. The write checks it again. A link above a file does not count if
/// the same undo removes it.
fn leave_behind_links(plans: &mut [Plan], undoer: &Undoer) {
    for at in 0..plans.len() {
        let plan = &plans[at];
        let is_removed = |other: &Plan| plan.path.below(&other.path).is_some();
        if !plan.writes()
            || is_link(plan.was)
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

/// Makes no file again that would belong to another user than before. The write
/// checks it again.
async fn leave_of_others(plans: &mut [Plan], undoer: &Undoer) {
    let made = plans.iter().enumerate();
    let made = made.filter(|(_, plan)| plan.base.is_none() && plan.after.is_some());
    let made: Vec<(usize, RelPath)> = made.map(|(at, plan)| (at, plan.path.clone())).collect();
    let replacer = undoer.replacer.clone();
    let lost = aside(move || {
        let lost = |(at, path): (usize, RelPath)| Some((at, replacer.owner_lost(&path)?));
        made.into_iter().filter_map(lost).collect::<Vec<_>>()
    });
    for (at, why) in lost.await.unwrap_or_default() {
        plans[at].leave(why);
    }
}

/// Leaves the files as they are that have a merge conflict (UNDO-10): git's
/// markers have no author, and git has yet to write their lines.
async fn leave_unmerged(plans: &mut [Plan], undoer: &Undoer) {
    let writes = plans.iter().enumerate().filter(|(_, plan)| plan.writes());
    let paths: Vec<(usize, RelPath)> = writes.map(|(at, plan)| (at, plan.path.clone())).collect();
    let (root, places) = (
        undoer.cx.workspace.root.clone(),
        undoer.cx.workspace.places.clone(),
    );
    let found = aside(move || {
        let mut unmerged = Unmerged::default();
        let paths = paths.into_iter();
        let found =
            paths.filter_map(|(at, path)| Some((at, unmerged.cause(&root, &path, &places)?)));
        found.collect::<Vec<(usize, String)>>()
    });
    for (at, why) in found.await.unwrap_or_default() {
        plans[at].leave_as((UndoOutcome::Left, why.clone()));
        plans[at].left.push(UndoLeft {
            cause: LeftCause::Unmerged,
            why,
            lines: None,
            removed: 0,
            text: String::new(),
            command: None,
        });
    }
}
