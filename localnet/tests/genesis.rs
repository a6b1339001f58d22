//! What a client finds on a localnet before it has done anything.

mod common;

use committor_localnet::{
    CHUNK_BUFFER_ID, DELEGATION_ID, Localnet, LocalnetError, OWNER_PROGRAM_ID, PAYER_LAMPORTS, features,
    programs,
};
use solana_address::Address;
use solana_signer::Signer;

use common::start;

/// The owner of feature accounts.
const FEATURE_PROGRAM: Address = Address::from_str_const("Feature111111111111111111111111111111111111");

#[tokio::test]
async fn the_projects_programs_are_executable_at_their_addresses() {
    let further = Address::new_unique();
    let builder = Localnet::builder().program(further, programs::CHUNK_BUFFER.to_vec());
    let (_localnet, rpc) = start(builder).await;

    for program in [CHUNK_BUFFER_ID, DELEGATION_ID, OWNER_PROGRAM_ID, further] {
        let account = rpc.get_account(&program).await.unwrap();
        assert!(account.executable, "{program}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_program_are_refused_with_the_address() {
    let program = Address::new_unique();
    let error = Localnet::builder().program(program, b"not an ELF file".to_vec()).start().await.unwrap_err();
    assert!(
        matches!(error, LocalnetError::LoadProgram { program: refused, .. } if refused == program),
        "{error:?}"
    );
}

#[tokio::test]
async fn balances_are_there_at_the_start_and_can_be_added_to() {
    let address = Address::new_unique();
    let (localnet, rpc) = start(Localnet::builder().airdrop(address, 2_000_000)).await;

    assert_eq!(rpc.get_balance(&localnet.payer().pubkey()).await.unwrap(), PAYER_LAMPORTS);
    assert_eq!(rpc.get_balance(&address).await.unwrap(), 2_000_000);

    // Twice the same within a slot, which a faucet's transaction could not do.
    localnet.airdrop(address, 500_000).await.unwrap();
    localnet.airdrop(address, 500_000).await.unwrap();
    assert_eq!(rpc.get_balance(&address).await.unwrap(), 3_000_000);

    let error = localnet.airdrop(address, u64::MAX).await.unwrap_err();
    assert!(matches!(error, LocalnetError::BalanceOverflow { .. }), "{error:?}");
}

#[tokio::test]
async fn open_feature_gates_have_the_account_that_a_cluster_has() {
    let (_localnet, rpc) = start(Localnet::builder()).await;

    let open = rpc.get_account(&features::ENABLE_TX_V1).await.unwrap();
    assert_eq!(open.owner, FEATURE_PROGRAM);
    assert_eq!(open.data, [1, 0, 0, 0, 0, 0, 0, 0, 0]);

    let closed = rpc.get_multiple_accounts(&[features::INCREASE_TX_ACCOUNT_LOCK_LIMIT]).await.unwrap();
    assert_eq!(closed, [None]);
}
