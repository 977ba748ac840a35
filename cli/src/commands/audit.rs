//! `touchmark audit`: compares the daemon's records with the disk.

use anstyle::Style;
use touchmark_client::proto::daemon::{Audit, Difference, Holds};
use touchmark_client::proto::{Hash, Reply};

use crate::context::Context;
use crate::output::{self, Failure, Outcome};
use crate::style;
use crate::table::{Cell, Step, Table, View};
use crate::text::{count, path};

/// A word, the path, what is on record and on disk.
const TABLE: Table = Table::new(&[Step::Middle(1, 12)]).with_remarks();

pub(crate) fn run(context: &Context) -> Outcome {
    let connection = context.open()?;
    let audited = connection.client.call(Audit {})?;
    let (checked, differences) = (audited.checked, audited.differences.len() as u64);
    match context.global.json {
        true => connection.json(Reply::Audit(audited))?,
        false => output::lines(&lines(&audited.differences, &View::here()))?,
    }
    let checked = count(checked, "file");
    if differences > 0 {
        return Err(Failure::No(format!(
            "{checked} compared; the record of {} differed from the disk and was corrected",
            count(differences, "file")
        )));
    }
    if context.global.json {
        return Ok(());
    }
    context.say(&format!("{checked} compared; all match the disk"))
}

/// Returns one text for each file that differs.
pub(crate) fn lines(differences: &[Difference], view: &View) -> Vec<String> {
    TABLE.lines(differences.iter().map(row), view.columns)
}

fn row(difference: &Difference) -> Vec<Cell> {
    let [believed, disk] = [difference.believed, difference.disk].map(holds);
    vec![
        (style::WARN, "differs".to_owned()),
        (Style::new(), path(&difference.path)),
        (Style::new(), format!("recorded {believed}, is {disk}")),
    ]
}

fn holds(holds: Holds) -> String {
    match holds {
        Holds::File(hash) => short(hash),
        Holds::Absent => "no file".into(),
        Holds::Unreadable => "unreadable".into(),
    }
}

fn short(hash: Hash) -> String {
    hash.to_string().chars().take(12).collect()
}
