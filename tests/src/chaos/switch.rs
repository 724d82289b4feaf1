//! An address that leads to one server, and after a failover to another: what a virtual address or a proxy is to an application.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Failure;

/// The address. Dropping it closes everything.
#[derive(Debug)]
pub(super) struct Switch {
    port: u16,
    target: Arc<AtomicU16>,
    /// Each change ends the connections that were made before it.
    epochs: watch::Sender<u64>,
    accepting: JoinHandle<()>,
}

impl Switch {
    /// An address on this machine that leads to the server on `target`.
    pub(super) async fn to(target: u16) -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let target = Arc::new(AtomicU16::new(target));
        let (epochs, epoch) = watch::channel(0);
        let accepting = tokio::spawn(accept(listener, Arc::clone(&target), epoch));
        Ok(Self { port, target, epochs, accepting })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Leads to another server from now on; connections to the one before end.
    pub(super) fn turn_to(&self, target: u16) {
        self.target.store(target, Ordering::SeqCst);
        self.epochs.send_modify(|epoch| *epoch += 1);
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.accepting.abort();
        self.epochs.send_modify(|epoch| *epoch += 1);
    }
}

async fn accept(listener: TcpListener, target: Arc<AtomicU16>, epoch: watch::Receiver<u64>) {
    // An error of a single connection is the problem of its client.
    while let Ok((client, _)) = listener.accept().await {
        let mut epoch = epoch.clone();
        epoch.mark_unchanged();
        let port = target.load(Ordering::SeqCst);
        tokio::spawn(async move {
            tokio::select! {
                () = forward(client, port) => {}
                _ = epoch.changed() => {}
            }
        });
    }
}

async fn forward(mut client: TcpStream, port: u16) {
    // A client whose server is gone finds its own connection closed.
    if let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
        drop(copy_bidirectional(&mut client, &mut server).await);
    }
}
