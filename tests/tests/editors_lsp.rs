//! `touchmark lsp` with the clients of real editors, set up as docs/lsp.md says:
//! Neovim's own, Emacs' eglot, and, as heavy parts, Kate and the client that
//! extensions of VS Code use.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::json;
use touchmark_tests::fetched::{debian, node};
use touchmark_tests::process::{until, wait_gone};
use touchmark_tests::world::binary;
use touchmark_tests::{Neovim, Session, World, children, neovim, parts, snippets};

/// The author and evidence of a version that an editor has reported.
const SAVED: &str = "user editor";

/// The choice in a menu is made by the beginning of its text.
const NEOVIM: &str = r#"
vim.ui.select = function(items, _, choose)
  for i, item in ipairs(items) do
    local action = item.action or item[2]
    if vim.startswith(action.title, _G.wanted) then
      return choose(item, i)
    end
  end
end
local calls, line, text = 0, nil, nil
-- The last answer in the cursor's line; asked for now and then, until there is one.
function _G.hover()
  local here = vim.fn.line('.')
  if line ~= here then
    calls, line, text = 0, here, nil
  end
  if calls % 20 == 0 and not text then
    local params = vim.lsp.util.make_position_params(0, 'utf-16')
    pcall(vim.lsp.buf_request, 0, 'textDocument/hover', params, function(_, result)
      if line == here then
        text = result and result.contents and result.contents.value
      end
    end)
  end
  calls = calls + 1
  return text
end
"#;

/// Edits and undoes in Emacs, and prints what eglot has been answered.
const EMACS: &str = r#"
;; By default the file is absent for a moment in each first save. On a busy machine
;; that is long enough for a removal (ATTR-12).
(setq backup-by-copying t)
(setq eglot-sync-connect t eglot-autoshutdown t eglot-send-changes-idle-time 0)
(defun server () (eglot-current-server))
(defun ask (method &rest more)
  (jsonrpc-request (server) method
                   (append (list :textDocument (eglot--TextDocumentIdentifier)) more)))
(defun say (what) (princ (format "%s\n" what)))
(defun unsaved () (eglot--signal-textDocument/didChange)
  (ask :textDocument/hover :position (eglot--pos-to-lsp-position))
  (say (string-trim (shell-command-to-string
                     (concat "touchmark call file/status "
                             "'{\"session\":\"s\",\"paths\":[\"a.txt\"]}'"
                             " | tr -d ' \\n' | grep -o '\"unsaved\":true' || echo saved")))))
(find-file "a.txt")
(forward-line 2)
(apply #'eglot (eglot--guess-contact))
(let ((tries 0))
  (while (and (< (setq tries (1+ tries)) 500)
              (null (ask :textDocument/hover :position (eglot--pos-to-lsp-position))))
    (accept-process-output nil 0.02)))
(unsaved)
(goto-char (point-min))
(insert "grüße 𝄞 ")
(unsaved)
(save-buffer)
(unsaved)
(goto-char (point-min))
(forward-line 2)
(say (plist-get (plist-get (ask :textDocument/hover :position (eglot--pos-to-lsp-position)) :contents) :value))
(let* ((range (list :start (eglot--pos-to-lsp-position) :end (eglot--pos-to-lsp-position)))
       (actions (ask :textDocument/codeAction :range range :context '(:diagnostics []))))
  (mapc (lambda (action) (say (plist-get action :title))) actions)
  (let ((command (plist-get (aref actions 1) :command)))
    (eglot-execute-command (server) (plist-get command :command) (plist-get command :arguments))))
(eglot-shutdown (server))
"#;

/// Creates a world with `a.txt`, whose third line an agent has changed.
fn world() -> (World, Session) {
    let world = World::new();
    let mut agent = world.session("s");
    world.file("a.txt", "one\ntwo\nthree\n");
    agent.read("a.txt");
    let edit = json!({"path": "a.txt", "oldString": "three", "newString": "drei"});
    assert_eq!(agent.ok("file/edit", edit)["outcome"], "applied");
    (world, agent)
}

/// Returns the blocks of docs/lsp.md in a language.
fn documented(language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lsp.md");
    let blocks = snippets::of(&page).into_iter();
    let blocks = blocks.filter(|block| block.language == language);
    blocks.map(|block| block.text).collect()
}

/// Makes `touchmark` the one under test.
fn find_touchmark(command: &mut Command) {
    let own = binary().parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(own).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(all).unwrap());
}

fn neovim(world: &World, program: &Path) {
    let [since_11, before] = &documented("lua")[..] else {
        panic!("docs/lsp.md has other blocks");
    };
    let init =
        format!("{NEOVIM}\nif vim.fn.has('nvim-0.11') == 1 then\n{since_11}\nelse\n{before}\nend");
    let mut editor = Neovim::start_with(world, program, &init, &["a.txt"], find_touchmark);
    // The server has answered, and its daemon too.
    editor.command("3");
    editor.until("return hover() ~= nil");
    let mut agent = world.session("s");
    editor.keys("ggcceins<Esc>");
    let lines = agent.wait_unsaved("a.txt", true);
    assert_eq!(lines, json!({"start": 1, "end": 1}));
    editor.keys("u");
    agent.wait_unsaved("a.txt", false);
    editor.keys("ggccgrüße 𝄞<Esc>A!<Esc>:write<CR>");
    agent.wait_unsaved("a.txt", false);
    let on_disk = || fs::read_to_string(world.path("a.txt")).unwrap();
    editor.until("return not vim.bo.modified");
    assert_eq!(on_disk(), "grüße 𝄞!\ntwo\ndrei\n");
    agent.wait_saves("a.txt", &["agent:s declared", SAVED]);

    editor.keys("3G");
    editor.until("return vim.fn.line('.') == 3 and (hover() or ''):find('agent')");
    editor.lua("_G.wanted = 'Undo'; vim.lsp.buf.code_action()");
    editor.until("vim.cmd('checktime') return vim.fn.getline(3) == 'three'");
    assert_eq!(on_disk(), "grüße 𝄞!\ntwo\nthree\n");
    // Loaded again: nothing is unsaved.
    agent.wait_unsaved("a.txt", false);
    // Saved, and ended at once.
    editor.keys("ggccmine<Esc>:wq<CR>");
    agent.wait_saves("a.txt", &["agent:s declared", SAVED, SAVED, SAVED]);
}

#[test]
fn neovims_own_client_reports_and_shows() {
    std::thread::scope(|scope| {
        for program in neovim::programs() {
            scope.spawn(move || neovim(&world().0, program));
        }
    });
}

/// Returns the directory with eglot for this machine's Emacs.
fn eglot() -> Option<PathBuf> {
    let what = "touchmark lsp with Emacs' eglot";
    let has = |arguments: &[&str]| {
        let mut emacs = Command::new("emacs");
        let output = emacs.args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !has(&["--version"]) {
        parts::not_tested(&format!("{what}: emacs is not here"));
        return None;
    }
    // Emacs 29 has it.
    if has(&["-Q", "--batch", "--eval", "(require 'eglot)"]) {
        return Some(PathBuf::new());
    }
    let package = debian("eglot", &["elpa-eglot"], what)?;
    let found = fs::read_dir(package.join("usr/share/emacs/site-lisp/elpa-src")).ok()?;
    let mut found = found.flatten().map(|entry| entry.path());
    found.find(|path| path.join("eglot.el").exists())
}

#[test]
fn emacs_eglot_reports_and_shows() {
    let Some(eglot) = eglot() else { return };
    let (world, mut agent) = world();
    let afternoon = world.outside().join("afternoon.el");
    let set_up = documented("elisp").concat();
    fs::write(&afternoon, format!("{set_up}{EMACS}")).unwrap();
    let mut command = Command::new("emacs");
    world.dress(&mut command);
    find_touchmark(&mut command);
    command
        .args(["-Q", "--batch", "-L"])
        .arg(&eglot)
        .arg("-l")
        .arg(&afternoon)
        .current_dir(world.workspace())
        .env("LANG", "C.UTF-8");
    let (said, wrong) = crate::editors_emacs::run(&mut command);
    let told: Vec<&str> = said.lines().collect();
    let [opened, typed, saved, author, keep, undo] = told[..] else {
        panic!("{said}{wrong}");
    };
    assert_eq!(
        [opened, typed, saved],
        ["saved", "\"unsaved\":true", "saved"]
    );
    assert!(
        author.contains("agent") && author.contains("1, "),
        "{author}"
    );
    assert_eq!(
        [keep, undo],
        ["Keep line 3 by agent-1", "Undo line 3 by agent-1"]
    );
    let on_disk = fs::read_to_string(world.path("a.txt")).unwrap();
    assert_eq!(on_disk, "grüße 𝄞 one\ntwo\nthree\n");
    let story = agent.saves("a.txt", true);
    assert_eq!(story, ["agent:s declared", SAVED, SAVED]);
}

/// Kate on a display without a screen, operated by its keys.
struct Kate {
    screen: Child,
    display: String,
    kate: Child,
}

impl Kate {
    /// Starts Kate with a file of a world.
    fn start(world: &World, file: &str) -> Self {
        let mut screen = Command::new("Xvfb");
        screen
            .args(["-displayfd", "1", "-nolisten", "tcp"])
            .args(["-screen", "0", "1000x700x24"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut screen = children::start(&mut screen).unwrap();
        let mut number = String::new();
        let mut output = BufReader::new(screen.stdout.take().unwrap());
        output.read_line(&mut number).unwrap();
        let display = format!(":{}", number.trim());

        let mut kate = Command::new("kate");
        world.dress(&mut kate);
        find_touchmark(&mut kate);
        kate.args(["--new", "--block", file])
            .current_dir(world.workspace())
            .env("DISPLAY", &display)
            .env("QT_QPA_PLATFORM", "xcb")
            .env("LANG", "C.UTF-8")
            .env_remove("DBUS_SESSION_BUS_ADDRESS")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let kate = children::start(&mut kate).unwrap();
        let kate = Self {
            screen,
            display,
            kate,
        };
        until("Kate has no window", || !kate.windows().is_empty());
        kate
    }

    fn xdotool(&self, args: &[&str]) -> Output {
        let mut xdotool = Command::new("xdotool");
        xdotool.args(args).env("DISPLAY", &self.display);
        xdotool.output().unwrap()
    }

    /// Returns the heights of the windows, menus among them.
    fn windows(&self) -> Vec<u32> {
        let windows = ["search", "--onlyvisible", "--class", "kate"];
        let heights = ["getwindowgeometry", "--shell", "%@"];
        let found = self.xdotool(&[&windows[..], &heights[..]].concat());
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        let heights = found
            .lines()
            .filter_map(|line| line.strip_prefix("HEIGHT="));
        heights.map(|height| height.parse().unwrap()).collect()
    }

    fn keys(&self, keys: &[&str]) {
        self.xdotool(&[&["key"], keys].concat());
    }

    /// Types at the beginning of the file.
    fn text(&self, text: &str) {
        self.keys(&["ctrl+Home"]);
        self.xdotool(&["type", text]);
    }

    /// Returns the servers that Kate has started.
    fn servers(&self) -> Vec<u32> {
        let id = self.kate.id().to_string();
        let found = Command::new("pgrep")
            .args(["-P", &id, "touchmark"])
            .output();
        let found = String::from_utf8(found.unwrap().stdout).unwrap();
        found.lines().map(|id| id.parse().unwrap()).collect()
    }
}

impl Drop for Kate {
    fn drop(&mut self) {
        for child in [&mut self.kate, &mut self.screen] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn kate_reports_and_undoes() {
    let what = "touchmark lsp with Kate";
    if !parts::heavy(what) {
        return;
    }
    for (program, argument) in [
        ("kate", "--version"),
        ("Xvfb", "-help"),
        ("xdotool", "version"),
    ] {
        let mut there = Command::new(program);
        there.arg(argument).env("QT_QPA_PLATFORM", "offscreen");
        if there.output().is_err() {
            return parts::not_tested(&format!("{what}: {program} is not here"));
        }
    }
    let (world, mut agent) = world();
    let settings = world.config().join("kate/lspclient");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("settings.json"), documented("json").concat()).unwrap();
    // The answer to Kate's question.
    let allowed = format!("AllowedServerCommandLines={} lsp", binary().display());
    let answer = format!("[lspclient]\n{allowed}\n");
    fs::write(world.config().join("katerc"), answer).unwrap();
    let on_disk = || fs::read_to_string(world.path("a.txt")).unwrap();

    let mut kate = Kate::start(&world, "a.txt");
    let search = ["search", "--onlyvisible", "--class", "kate", "windowfocus"];
    // Typed until the window has the keys, and the server a daemon.
    until("nothing is unsaved", || {
        kate.xdotool(&search);
        kate.text("x");
        agent.status("a.txt")["unsaved"] == true
    });
    until("the changes are not undone", || {
        kate.keys(&["ctrl+z"]);
        agent.status("a.txt")["unsaved"] != true
    });
    kate.text("mine ");
    let lines = agent.wait_unsaved("a.txt", true);
    assert_eq!(lines, json!({"start": 1, "end": 1}));
    kate.keys(&["ctrl+s"]);
    agent.wait_saves("a.txt", &["agent:s declared", SAVED]);
    agent.wait_unsaved("a.txt", false);
    assert_eq!(on_disk(), "mine one\ntwo\ndrei\n");

    kate.keys(&["ctrl+Home", "Down", "Down", "alt+Return"]);
    // A menu of two lines: it is empty at first.
    until("no menu", || {
        kate.windows()
            .into_iter()
            .any(|height| (40..80).contains(&height))
    });
    kate.keys(&["Down", "Down", "Return"]);
    until("nothing is undone", || {
        on_disk() == "mine one\ntwo\nthree\n"
    });
    // Loaded again. Then saved, and ended at once.
    kate.keys(&["F5"]);
    kate.text("all ");
    agent.wait_unsaved("a.txt", true);
    let servers = kate.servers();
    assert_eq!(servers.len(), 1, "{servers:?}");
    kate.keys(&["ctrl+s", "ctrl+q"]);
    agent.wait_saves("a.txt", &["agent:s declared", SAVED, SAVED, SAVED]);
    assert_eq!(on_disk(), "all mine one\ntwo\nthree\n");
    until("Kate does not end", || {
        kate.kate.try_wait().unwrap().is_some()
    });
    servers.into_iter().for_each(wait_gone);
}

#[test]
fn the_client_of_vscode_extensions_reports_and_shows() {
    let what = "touchmark lsp with vscode-languageclient";
    if !parts::heavy(what) {
        return;
    }
    let Some(workbench) = crate::editors_vscode::workbench(what) else {
        return;
    };
    let client = ["vscode-languageclient@11.0.0"];
    let Some(client) = node("languageclient", &client, what) else {
        return;
    };
    let extension = documented("js").concat();
    let by_name = "command: \"touchmark\"";
    assert!(extension.contains(by_name), "docs/lsp.md has another block");
    // VS Code has the PATH of a login.
    let by_path = format!("command: {}", json!(binary()));
    crate::editors_vscode::operate("test/client.mjs", &workbench, "client", |command| {
        command
            .env("TOUCHMARK_CLIENT", client)
            .env("TOUCHMARK_EXTENSION", extension.replace(by_name, &by_path));
    });
}
