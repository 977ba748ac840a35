//! Checks whether there is an order in which all acts can have happened.
//!
//! Every content is written once, so a file is a register with unique values. A
//! guarded write that succeeded names the content that it displaced. Other
//! writes may be displaced by any write after them that does not look. Reads,
//! answers and the end show the content at some moment in between. If guarded
//! writes destroy nothing unseen and answers are current, all acts fit one
//! order. A lost save or a wrong `fresh` fits none.
//!
//! For unique values this is decided by looking at pairs (Gibbons and Korach,
//! *Testing Shared Memories*, 1997). All acts on one content, and on contents
//! that guarded writes made from it, form a group that is contiguous in the
//! order. So of two such groups one is wholly before the other.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::account::Account;
use super::log::Act;
use super::{FILES, Field};

/// A write or read of a content, with the times before and after.
#[derive(Clone, Debug)]
struct Op<'a> {
    hash: &'a str,
    /// The content that a guarded write displaced; `None` if it is not known,
    /// or for other acts.
    base: Option<&'a str>,
    write: bool,
    act: Option<&'a Act>,
    t0: u64,
    t1: u64,
}

/// Returns the errors that were found.
pub fn check(account: &Account) -> Vec<String> {
    let mut wrong = Vec::new();
    // Contents that git has stashed come back, so no order can be determined.
    for path in FILES.iter().filter(|path| Field::of(path) != Field::Stash) {
        let ops = ops(account, path, &mut wrong);
        one_order(path, &ops, &mut wrong);
        unnamed_bases(account, path, &ops, &mut wrong);
        lines(account, path, &mut wrong);
    }
    for act in account.acts.iter().filter(|act| act.act == "guarded") {
        // A forced write may clobber, and what it clobbered is stored
        // (GUARD-4).
        let told = act.flag("force") || act.flag("fresh");
        let kept = told && act.fields["kept"][0].is_string();
        // The write replaced a removal (ATTR-10): there is nothing to store.
        let nothing = act.text("guard") == Some("noreplace");
        if act.text("outcome") == Some("clobbered") && !kept && !nothing {
            wrong.push(format!("a guarded write clobbered: {}", act.fields));
        }
        named_base_was_seen(account, act, &mut wrong);
    }
    wrong
}

fn ops<'a>(account: &'a Account, path: &'a str, wrong: &mut Vec<String>) -> Vec<Op<'a>> {
    let mut ops: Vec<Op<'a>> = Vec::new();
    let mut refused: HashSet<&str> = HashSet::new();
    for act in account.of(path) {
        let open = act.t1.unwrap_or(u64::MAX);
        let of = |hash, base, write, t1| Op {
            hash,
            base,
            write,
            act: Some(act),
            t0: act.t0,
            t1,
        };
        match (act.act.as_str(), act.text("hash")) {
            // An act that was cut short may have written nothing.
            ("own", Some(hash)) => ops.push(of(hash, None, true, open)),
            ("put", _) => ops.extend(account.made(act).map(|hash| of(hash, None, true, open))),
            ("read" | "readText" | "status", Some(hash)) if act.t1.is_some() => {
                ops.push(of(hash, None, false, open));
            }
            ("guarded", _) => {
                let Some(hash) = act.text("to").or(act.text("hash")) else {
                    continue;
                };
                if act.text("error").is_some() {
                    refused.insert(hash);
                } else if act.t1.is_some() {
                    if act.text("written") == Some(hash) {
                        let kept = act.fields["kept"][0].as_str();
                        ops.push(of(hash, base(act).or(kept), true, open));
                    }
                } else if account.recorded(path, hash) {
                    ops.push(of(hash, base(act), true, open));
                } else {
                    // The write was refused, or undone at the daemon's next
                    // start.
                    refused.insert(hash);
                }
            }
            _ => {}
        }
    }
    if let Some(hash) = &account.disk[path] {
        if refused.contains(hash.as_str()) {
            wrong.push(format!("{path} holds what was refused: {hash}"));
        }
        ops.push(Op {
            hash,
            base: None,
            write: false,
            act: None,
            t0: account.end,
            t1: account.end,
        });
    }
    // A refused content may be visible for a moment, until the names are
    // exchanged back. A stored content is not lost, wherever it was.
    let written: HashSet<&str> = ops.iter().filter(|op| op.write).map(|op| op.hash).collect();
    ops.retain(|op| {
        written.contains(op.hash) && !refused.contains(op.hash) && !account.kept.contains(op.hash)
    });
    ops
}

/// Returns the content that a guarded write names as displaced.
fn base(act: &Act) -> Option<&str> {
    act.text("from").or(act.text("base"))
}

/// Checks that every two groups have some order.
fn one_order(path: &str, ops: &[Op<'_>], wrong: &mut Vec<String>) {
    // The displaced content of each guarded write.
    let bases: HashMap<&str, &str> = ops
        .iter()
        .filter_map(|op| Some((op.hash, op.base?)))
        .collect();
    let mut groups: BTreeMap<&str, Vec<&Op<'_>>> = BTreeMap::new();
    for op in ops {
        groups.entry(first(&bases, op.hash)).or_default().push(op);
    }
    struct Group<'o, 'a> {
        ended: &'o Op<'a>,
        began: &'o Op<'a>,
    }
    let groups: Vec<Group<'_, '_>> = groups
        .values()
        .filter_map(|ops| {
            Some(Group {
                ended: ops.iter().min_by_key(|op| op.t1)?,
                began: ops.iter().max_by_key(|op| op.t0)?,
            })
        })
        .collect();
    for (index, one) in groups.iter().enumerate() {
        for other in &groups[index + 1..] {
            if one.ended.t1 < other.began.t0 && other.ended.t1 < one.began.t0 {
                let mut told = [one.ended, one.began, other.ended, other.began];
                told.sort_by_key(|op| op.t0);
                let told = told.map(tell);
                wrong.push(format!("{path}: no order fits:\n  {}", told.join("\n  ")));
            }
        }
    }
}

/// Returns the first content of a chain of guarded writes.
fn first<'a>(bases: &HashMap<&'a str, &'a str>, hash: &'a str) -> &'a str {
    let mut first = hash;
    // At most as many steps as there are links, in case they form a circle.
    for _ in 0..bases.len() {
        match bases.get(first) {
            Some(before) => first = before,
            None => break,
        }
    }
    first
}

fn tell(op: &Op<'_>) -> String {
    match op.act {
        Some(act) => format!(
            "{} {} {}..{} {}",
            act.who, act.act, op.t0, op.t1, act.fields
        ),
        None => format!("the end {}: {}", op.t0, op.hash),
    }
}

/// Checks guarded writes that do not name their base. Where the displaced
/// content is certain, the session must have seen it, or it must be stored.
fn unnamed_bases(account: &Account, path: &str, ops: &[Op<'_>], wrong: &mut Vec<String>) {
    let writes: Vec<&Op<'_>> = ops.iter().filter(|op| op.write).collect();
    for write in &writes {
        let Some(act) = write.act.filter(|act| act.act == "guarded") else {
            continue;
        };
        if write.base.is_some() || write.t1 == u64::MAX {
            continue;
        }
        let before = writes
            .iter()
            .filter(|op| op.hash != write.hash && op.t0 < write.t1);
        let Some(last) = before.clone().max_by_key(|op| op.t1) else {
            continue;
        };
        let certain = last.t1 < write.t0
            && before
                .clone()
                .all(|op| op.hash == last.hash || op.t1 < last.t0);
        let deleted = account
            .of(path)
            .any(|act| act.act == "delete" && act.t1.is_none_or(|t1| t1 > last.t0));
        // What is found at the end of a mark without a content counts as the
        // session's.
        let certain = certain && !Field::of(path).own();
        if certain && !deleted && !account.may_have_seen(&act.who, path, last.hash) {
            wrong.push(format!(
                "{path}: written over what was not seen:\n  {}\n  {}",
                tell(last),
                tell(write)
            ));
        }
    }
}

/// Checks that a session has seen the base that its write names (GUARD-4).
fn named_base_was_seen(account: &Account, act: &Act, wrong: &mut Vec<String>) {
    if act.text("outcome").is_some()
        && let Some(base) = base(act)
        && !account.may_have_seen(&act.who, act.path(), base)
    {
        wrong.push(format!("written upon what was not seen: {}", act.fields));
    }
}

/// Checks that a line which a user has added is on disk, stored, or in a
/// content that a session has seen. Where agents write directly they may have
/// overwritten it immediately, so those files are not checked.
fn lines(account: &Account, path: &str, wrong: &mut Vec<String>) {
    if Field::of(path).own() {
        return;
    }
    for act in account.of(path).filter(|act| act.act == "put") {
        if let Some(line) = act.text("line")
            && act.t1.is_some()
            && account.with_line(line).is_none()
        {
            wrong.push(format!("{path}: lost: {}", act.fields));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(hash: &'static str, base: Option<&'static str>, write: bool, t0: u64) -> Op<'static> {
        Op {
            hash,
            base,
            write,
            act: None,
            t0,
            t1: t0 + 5,
        }
    }

    fn wrong(ops: &[Op<'_>]) -> usize {
        let mut wrong = Vec::new();
        one_order("f", ops, &mut wrong);
        wrong.len()
    }

    #[test]
    fn a_save_displaced_unseen_fits_no_order() {
        let base = op("base", None, true, 0);
        let save = op("save", None, true, 22);
        let mut guarded = op("agent", Some("base"), true, 20);
        guarded.t1 = 40;
        // The save may have happened after the write, and may still be on disk.
        assert_eq!(wrong(&[base.clone(), save.clone(), guarded.clone()]), 0);
        let seen = op("save", None, false, 60);
        assert_eq!(
            wrong(&[base.clone(), save.clone(), guarded.clone(), seen]),
            0
        );
        // A save after the write contradicts a later read of the agent's
        // content.
        let seen = op("agent", None, false, 60);
        assert_eq!(
            wrong(&[base.clone(), save.clone(), guarded.clone(), seen]),
            1
        );
        // It also contradicts a guarded write upon the agent's content.
        let next = op("next", Some("agent"), true, 60);
        assert_eq!(
            wrong(&[base.clone(), save.clone(), guarded.clone(), next]),
            1
        );
        // A later write that does not look does not contradict it.
        let next = op("next", None, true, 60);
        assert_eq!(wrong(&[base, save, guarded, next]), 0);
    }

    #[test]
    fn an_answer_out_of_date_fits_no_order() {
        let old = op("old", None, true, 0);
        let new = op("new", None, true, 10);
        let at_once = op("old", None, false, 14);
        assert_eq!(wrong(&[old.clone(), new.clone(), at_once]), 0);
        let late = op("old", None, false, 20);
        assert_eq!(wrong(&[old, new, late]), 1);
    }
}
