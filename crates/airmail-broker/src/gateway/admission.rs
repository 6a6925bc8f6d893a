//! Admission: asked of each publish, and the publishes of each session that wait for it in order.

use super::{Gateway, GatewayEffects};
use crate::access::{Admit, Cost};
use crate::keys::SessionKey;
use airmail_model::frame::RequestId;
use airmail_model::{Batch, Checked};
use std::time::Duration;

const NANOSECOND: Duration = Duration::from_nanos(1);

impl Gateway {
    /// Whether a batch may go on, has to wait, or is refused.
    pub(super) fn ask_admission(&mut self, session: SessionKey, batch: &Checked<Batch>) -> Admit {
        let cost = Cost {
            messages: batch.records().into(),
            bytes: u32::try_from(batch.bytes().len()).unwrap_or(u32::MAX),
        };
        let principal = &self.sessions[session].principal;
        self.access.admission.admit(self.now, principal, cost)
    }

    /// Has a batch wait for admission behind the session's others.
    pub(super) fn park(
        &mut self,
        session: SessionKey,
        request: RequestId,
        batch: Checked<Batch>,
        out: &mut GatewayEffects,
    ) {
        let bytes = batch.bytes().len();
        let publishes = &mut self.sessions[session].publishes;
        let full = publishes.bytes + bytes > self.config.parked_bytes;
        if full && !publishes.queue.is_empty() {
            let error = self.busy("publishes").limit(format_args!(
                "{} bytes that wait for admission",
                self.config.parked_bytes
            ));
            self.refuse_publish(session, request, &batch, error, out);
            return;
        }
        publishes.bytes += bytes;
        publishes.queue.push_back((request, batch));
        let wake = publishes.wake;
        self.stats.parked += 1;
        self.timers.admission.insert((wake, session));
    }

    /// Asks for admission again, for those whose time has come.
    pub(super) fn admit_parked(&mut self, out: &mut GatewayEffects) {
        while let Some((wake, session)) = self.timers.admission.first().copied() {
            if wake > self.now.mono {
                break;
            }
            self.timers.admission.pop_first();
            self.admit_session(session, out);
        }
    }

    fn admit_session(&mut self, session: SessionKey, out: &mut GatewayEffects) {
        let now = self.now.mono;
        while let Some((request, batch)) = self.sessions[session].publishes.queue.pop_front() {
            let admit = self.ask_admission(session, &batch);
            let publishes = &mut self.sessions[session].publishes;
            if let Admit::WaitFor(delay) = admit {
                // At least a nanosecond, so that time has to pass before it is asked again.
                let wake = now.plus(delay).max(now.plus(NANOSECOND));
                publishes.wake = wake;
                publishes.queue.push_front((request, batch));
                self.timers.admission.insert((wake, session));
                return;
            }
            publishes.bytes -= batch.bytes().len();
            match admit {
                Admit::Refuse(error) => self.refuse_publish(session, request, &batch, error, out),
                Admit::Go | Admit::WaitFor(_) => self.enter(session, request, batch, out),
            }
        }
    }

    /// Forgets what a session's publishes wait for.
    pub(super) fn drop_parked(&mut self, session: SessionKey) {
        let publishes = std::mem::take(&mut self.sessions[session].publishes);
        self.timers.admission.remove(&(publishes.wake, session));
    }
}
