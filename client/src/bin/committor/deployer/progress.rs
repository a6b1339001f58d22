//! What people watch while data goes on chain: a bar on a terminal, a line for every tenth elsewhere. All on stderr.

use std::{
    io::{IsTerminal, stderr},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use committor_client::{
    chain::RpcChain,
    deploy::{Progress, Watch},
};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

/// Lines that a transfer gives where there is no terminal.
const LINES: u64 = 10;

/// A transfer that is shown.
pub struct Transfer {
    view: Arc<Mutex<View>>,
    chain: Arc<RpcChain>,
}

#[derive(Default)]
struct View {
    bar: Option<ProgressBar>,
    transactions: u64,
    bytes: u64,
    sent: u64,
    landed: u64,
    landed_bytes: u64,
    expired: u64,
}

impl Transfer {
    /// Shows what `watch` is told from now on.
    pub fn follow(watch: &mut Watch, chain: Arc<RpcChain>) -> Self {
        let view = Arc::new(Mutex::new(View::default()));
        let shown = view.clone();
        watch.progress = Some(Arc::new(move |progress| {
            // A panic elsewhere leaves numbers that are merely old.
            shown.lock().unwrap_or_else(PoisonError::into_inner).show(&progress);
        }));
        Self { view, chain }
    }

    /// Leaves the terminal as it was, and says what did not go smoothly.
    pub fn finish(self) {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = &view.bar {
            bar.finish_and_clear();
        }
        let stats = self.chain.stats();
        for ((method, fault), times) in &stats.retries {
            eprintln!("{method} asked again {times}x: {fault}");
        }
        if stats.resent > 0 {
            eprintln!("transactions sent again before they landed: {}", stats.resent);
        }
        if view.expired > 0 {
            eprintln!("transactions signed again after they expired: {}", view.expired);
        }
    }
}

impl View {
    fn show(&mut self, progress: &Progress) {
        match progress {
            Progress::Planned { transactions, bytes, skipped } => {
                (self.transactions, self.bytes) = (*transactions, *bytes);
                (self.sent, self.landed, self.landed_bytes) = (0, 0, 0);
                let plural = if *transactions == 1 { "" } else { "s" };
                self.line(&format!("{transactions} transaction{plural}; {skipped} bytes need not be sent"));
                self.start();
            }
            Progress::Sent { transactions } => self.sent += transactions,
            Progress::Landed { bytes } => {
                self.landed += 1;
                self.landed_bytes += bytes;
                self.count();
            }
            Progress::Expired => {
                self.expired += 1;
                self.line("a transaction expired and is signed again");
            }
            Progress::Again { reason } => self.line(&format!("looking again: {reason}")),
        }
    }

    fn start(&mut self) {
        if !stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::new(self.transactions);
        let style = "{bar:32} {pos}/{len} transactions, {msg}, {per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        if let Some(before) = self.bar.replace(bar) {
            before.finish_and_clear();
        }
    }

    fn count(&self) {
        let (landed, all) = (self.landed, self.transactions);
        if let Some(bar) = &self.bar {
            let in_flight = self.sent.saturating_sub(landed);
            bar.set_message(format!("{in_flight} in flight, {}", HumanBytes(self.landed_bytes)));
            bar.set_position(landed);
            return;
        }
        let tenth = |landed: u64| landed * LINES / all.max(1);
        if landed == all || tenth(landed) > tenth(landed.saturating_sub(1)) {
            eprintln!("{landed} of {all} transactions landed, {} of {} bytes", self.landed_bytes, self.bytes);
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }
}
