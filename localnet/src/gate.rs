use crossbeam_channel::{Receiver, Sender};
use solana_message::{Message, VersionedMessage};
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;
use surfpool_types::{SimnetCommand, TransactionMetadata, TransactionStatusEvent};

/// Hands commands from the RPC server to the run loop, and answers v1 transactions as a cluster does where their
/// feature is off. Ends when either side is gone.
///
/// Surfpool executes v1 transactions whatever the feature says.
pub(crate) fn refuse_v1_transactions(from_rpc: Receiver<SimnetCommand>, to_run_loop: Sender<SimnetCommand>) {
    for command in from_rpc {
        if to_run_loop.send(refuse_v1(command)).is_err() {
            break;
        }
    }
}

fn refuse_v1(command: SimnetCommand) -> SimnetCommand {
    match command {
        SimnetCommand::ProcessTransaction(id, transaction, status, _, _) if is_v1(&transaction) => {
            // The first answer is the one that the sender sees.
            let _ = status.try_send(TransactionStatusEvent::SimulationFailure((
                TransactionError::UnsupportedVersion,
                TransactionMetadata::default(),
            )));
            // The run loop must still see the signature, or the RPC server counts it as pending for ever.
            SimnetCommand::ProcessTransaction(id, voided(transaction), status, false, Some(false))
        }
        SimnetCommand::ProcessBundle(id, transactions, reply) if transactions.iter().any(is_v1) => {
            let _ = reply.try_send(Err(TransactionError::UnsupportedVersion.to_string()));
            SimnetCommand::ProcessBundle(id, Vec::new(), reply)
        }
        other => other,
    }
}

fn is_v1(transaction: &VersionedTransaction) -> bool {
    matches!(transaction.message, VersionedMessage::V1(_))
}

/// A transaction with the same signature that fails its signature check, and so has no effect.
fn voided(transaction: VersionedTransaction) -> VersionedTransaction {
    let payer = transaction.message.static_account_keys().first();
    VersionedTransaction {
        message: VersionedMessage::Legacy(Message::new(&[], payer)),
        signatures: transaction.signatures,
    }
}
