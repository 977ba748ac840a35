//! Calls the handlers of requests.

use touchmark_proto::writes::QuotesNormalized;
use touchmark_proto::{Error, ErrorCode, Reply, Request, RequestId};

use super::Engine;
use crate::effect::Effect;
use crate::requests::pending::{Answered, Pending, Stop, done};
use crate::requests::table::ForShell;
use crate::requests::table::table;
use crate::text::quotes;

/// Generates the call of each handler from the rows.
macro_rules! dispatch {
    (
        ($ask:ident, $core:ident, $request:ident, $pending:ident)
        shell {
            $($shell:ident: $s_change:ident,
                $s_whose:ident [$($s_session:ident)?], Names [$($s_path:ident)*],
                $s_need:ident $(($s_about:ident))?;)*
        }
        engine {
            $($own:ident: $change:ident $(if $change_if:expr)?,
                $whose:ident [$($session:ident)?] $(but $more:ident if $more_if:expr)?,
                $use:ident [$($path:ident)*] $(if $use_if:expr)?,
                $need:ident $(($about:ident $(if $about_if:expr)?))?
                => $handler:expr;)*
        }
    ) => {
        impl Engine {
            /// Calls the handler of a request.
            #[allow(unused_variables)]
            pub(super) fn act(
                &mut self,
                $request: RequestId,
                $pending: &mut Pending,
                request: Request,
            ) -> Answered {
                let $core = &mut self.core;
                match request {
                    $(Request::$shell(ask) =>
                        for_shell($request, $pending, ForShell::$shell(ask)),)*
                    $(Request::$own($ask) => $handler,)*
                }
            }
        }
    };
}

table!(dispatch);

fn for_shell(request: RequestId, pending: &Pending, ask: ForShell) -> Answered {
    match pending.connection() {
        Some(connection) => Err(Stop::Passed(Effect::Host {
            request,
            connection,
            ask,
        })
        .into()),
        None => Err(Error::new(ErrorCode::InternalError, "a request without a connection").into()),
    }
}
