//! Reads, hears what others changed, and edits.

use touchmark_client::{Session, connect};

fn main() -> Result<(), touchmark_client::Error> {
    let session = Session::open(&connect()?, "fix-42")?;
    let before = session.read_text("src/parser.rs")?.text.unwrap_or_default();
    for change in session.changed()? {
        println!("{} was changed by {:?}", change.path, change.changed_by);
    }
    // Marked; refused if the copy is stale.
    let edit = session.edit("src/parser.rs")?;
    // Guarded: what is saved in between stays. Dropped instead, it is aborted.
    let written = edit.write(before.replace("10", "20").as_bytes())?;
    println!("{:?}", written.outcome);
    session.close()
}
