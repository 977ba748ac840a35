//! The example of docs/editors.md, verbatim, in a real Emacs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use touchmark_tests::world::finish;
use touchmark_tests::{World, parts};

/// The steps of a user, with the daemon's answer after each.
const AFTERNOON: &str = r#"
(defun unsaved ()
  (let* ((answer (jsonrpc-request touchmark-connection :file/status
                                  '(:session "s" :paths ["a.txt"])))
         (file (aref (plist-get answer :files) 0)))
    (princ (format "%s %s\n" (plist-get file :state) (eq t (plist-get file :unsaved))))))
(touchmark-connect (getenv "SOCKET"))
(find-file "a.txt")
(unsaved)
(goto-char (point-max))
(insert "grüße\n")
(unsaved)
(set-buffer-file-coding-system 'latin-1-dos)
(save-buffer)
(unsaved)
(insert "more\n")
(unsaved)
(revert-buffer t t)
(unsaved)
(insert "lost\n")
(set-buffer-modified-p nil)
(kill-buffer)
(unsaved)
"#;

#[test]
fn the_documented_example_works_as_it_stands() {
    if Command::new("emacs").arg("--version").output().is_err() {
        return parts::not_tested("docs/editors.md's example: emacs is not here");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let document = fs::read_to_string(root.join("docs/editors.md")).unwrap();
    let (_, example) = document.split_once("```elisp\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let lines = example.lines().filter(|line| !line.is_empty()).count();
    assert!(lines <= 30, "the example has grown to {lines} lines");

    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\n");
    agent.read("a.txt");
    let (touchmark, afternoon) = (
        world.outside().join("touchmark.el"),
        world.outside().join("afternoon.el"),
    );
    fs::write(&touchmark, example).unwrap();
    fs::write(&afternoon, AFTERNOON).unwrap();
    let mut command = Command::new("emacs");
    world.dress(&mut command);
    command
        .args(["-Q", "--batch", "-l"])
        .arg(&touchmark)
        .arg("-l")
        .arg(&afternoon)
        .current_dir(world.workspace())
        .env("SOCKET", world.socket());
    let (said, wrong) = run(&mut command);
    let told: Vec<&str> = said.lines().collect();
    let wanted = [
        "fresh nil", // opened
        "fresh t",   // typed
        "stale nil", // saved
        "stale t",   // typed again
        "stale nil", // reverted
        "stale nil", // closed
    ];
    assert_eq!(told, wanted, "{wrong}");
    // The bytes on disk, not the buffer's text, were reported.
    assert_eq!(
        fs::read(world.path("a.txt")).unwrap(),
        b"one\r\ngr\xfc\xdfe\r\n"
    );
    let story = agent.saves("a.txt", true);
    assert_eq!(story, ["user editor"], "{:#?}", agent.history("a.txt"));
}

/// Runs an Emacs to its end. Returns its output and its errors.
pub(crate) fn run(command: &mut Command) -> (String, String) {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finish(child, "emacs");
    let [said, wrong] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{said}{wrong}");
    (said, wrong)
}
