//! Reading the configuration again, on SIGHUP.

use touchmark_proto::daemon::Configuration;
use touchmark_proto::native;

use std::sync::Arc;

use super::Daemon;
use crate::config::Config;
use crate::life;
use crate::system::process;

impl Daemon {
    /// Applies the settings that can change while the daemon runs. If the
    /// user's file is invalid, nothing changes: a half-saved file must not
    /// remove what is stored. `status` lists the settings that are not in
    /// effect.
    pub(super) fn reload(&mut self) {
        let new = match Config::of(&self.options.places, self.options.user_config.as_deref()) {
            Ok(new) => new,
            Err(error) => {
                tracing::error!("the configuration stays as it was: {error}");
                self.configuration.refused = Some(error.to_string());
                return;
            }
        };
        for wrong in &new.wrong {
            tracing::warn!("not in force: {wrong}");
        }
        let refused = new.refused();
        if new.user_is_wrong {
            tracing::error!("the configuration stays as it was");
            self.configuration.refused = refused;
            return;
        }
        let changes = Arc::make_mut(&mut self.options.config).reload(&new.config);
        tracing::info!("the configuration was read: {}", list(&changes.taken));
        if !changes.at_restart.is_empty() {
            tracing::warn!("in force after a restart: {}", list(&changes.at_restart));
        }
        self.configuration = Configuration {
            refused,
            at_restart: changes.at_restart.iter().map(|&key| key.into()).collect(),
        };
        let config = &self.options.config;
        process::raise_descriptor_limit(life::descriptors(config.connections));
        let root = native::bytes(&self.options.workspace).into_owned();
        let mut engine = config.engine(root, false);
        engine.utc_offset = crate::time::utc_offset();
        self.engine.reconfigure(engine);
        if changes
            .taken
            .iter()
            .any(|key| key.starts_with("telemetry."))
        {
            self.switch_telemetry();
        }
        self.forget_unused();
        self.prune();
    }
}

fn list(keys: &[&str]) -> String {
    match keys {
        [] => "nothing has changed".into(),
        keys => keys.join(", "),
    }
}
