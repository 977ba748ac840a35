//! Applies changed configuration files to a running daemon.

use super::Config;

/// The keys whose values have changed, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The keys whose new value is now in effect.
    pub taken: Vec<&'static str>,
    /// The keys whose new value takes effect at the next start.
    pub at_restart: Vec<&'static str>,
}

impl Changes {
    fn take<T: PartialEq>(&mut self, key: &'static str, running: &mut T, new: T) {
        if *running != new {
            *running = new;
            self.taken.push(key);
            self.taken.dedup();
        }
    }

    fn keep<T: PartialEq>(&mut self, key: &'static str, running: &T, new: &T) {
        if running != new {
            self.at_restart.push(key);
            self.at_restart.dedup();
        }
    }
}

impl Config {
    /// Takes those values from `new` that can change while the daemon runs. The
    /// others stay as they were when they were used: how names compare, how the
    /// store syncs and what it contains, the size of a message on open
    /// connections.
    pub fn reload(&mut self, new: Self) -> Changes {
        // Destructured by name, so that the compiler reports a new key that is
        // missing here.
        let Self {
            case,
            durability,
            watch,
            off,
            idle_exit,
            edit_ttl,
            flag_ttl,
            hook_ttl,
            command_ttl,
            late,
            frame,
            connections,
            read_text,
            contents_total,
            contents_file,
            contents_exclude,
            scope_exclude,
            guard_protect,
            versions_per_path,
            versions_age,
            sessions_keep,
            recovery_age,
            recovery_bytes,
            dedup,
            replace_repeats,
            gate,
            gates,
            unsaved,
            worktrees_notice,
            calls_keep,
            calls_age,
            calls_bytes,
            calls_never,
            calls_rules,
            telemetry,
            telemetry_endpoint,
            telemetry_headers,
            telemetry_paths,
        } = new;
        let mut changes = Changes::default();
        changes.keep("case", &self.case, &case);
        changes.keep("durability", &self.durability, &durability);
        changes.keep("watch", &self.watch, &watch);
        changes.take("off", &mut self.off, off);
        changes.take("idle_exit", &mut self.idle_exit, idle_exit);
        changes.take("marks.edit_ttl", &mut self.edit_ttl, edit_ttl);
        changes.take("marks.flag_ttl", &mut self.flag_ttl, flag_ttl);
        changes.take("marks.hook_ttl", &mut self.hook_ttl, hook_ttl);
        changes.take("marks.command_ttl", &mut self.command_ttl, command_ttl);
        changes.take("marks.late", &mut self.late, late);
        changes.keep("limits.frame", &self.frame, &frame);
        changes.take("limits.connections", &mut self.connections, connections);
        changes.take("limits.read_text", &mut self.read_text, read_text);
        changes.keep("contents.total", &self.contents_total, &contents_total);
        changes.keep("contents.file", &self.contents_file, &contents_file);
        changes.keep(
            "contents.exclude",
            &self.contents_exclude,
            &contents_exclude,
        );
        changes.keep("scope.exclude", &self.scope_exclude, &scope_exclude);
        changes.keep("guard.protect", &self.guard_protect, &guard_protect);
        changes.take(
            "versions.keep",
            &mut self.versions_per_path,
            versions_per_path,
        );
        changes.take("versions.keep", &mut self.versions_age, versions_age);
        changes.take("sessions.keep", &mut self.sessions_keep, sessions_keep);
        changes.keep("recovery.keep", &self.recovery_age, &recovery_age);
        changes.keep("recovery.keep", &self.recovery_bytes, &recovery_bytes);
        changes.take("calls.keep", &mut self.calls_keep, calls_keep);
        changes.take("calls.age", &mut self.calls_age, calls_age);
        changes.take("calls.bytes", &mut self.calls_bytes, calls_bytes);
        changes.take("calls.never", &mut self.calls_never, calls_never);
        changes.take("calls.rules", &mut self.calls_rules, calls_rules);
        changes.take("dedup.enabled", &mut self.dedup, dedup);
        changes.take(
            "hooks.replace_repeats",
            &mut self.replace_repeats,
            replace_repeats,
        );
        changes.take("hooks.gate", &mut self.gate, gate);
        changes.take("hooks.gates", &mut self.gates, gates);
        changes.take("hooks.unsaved", &mut self.unsaved, unsaved);
        changes.take("telemetry.enabled", &mut self.telemetry, telemetry);
        changes.take(
            "telemetry.endpoint",
            &mut self.telemetry_endpoint,
            telemetry_endpoint,
        );
        changes.take(
            "telemetry.headers",
            &mut self.telemetry_headers,
            telemetry_headers,
        );
        changes.take(
            "telemetry.paths",
            &mut self.telemetry_paths,
            telemetry_paths,
        );
        changes.take(
            "worktrees.notice",
            &mut self.worktrees_notice,
            worktrees_notice,
        );
        changes
    }
}
