//! Programs of the upgradeable loader: the first deploy, upgrades, and buffers that somebody else upgrades with.

mod error;

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use solana_account::Account;
use solana_address::Address;
use solana_loader_v3_interface::get_program_data_address;
use solana_sdk_ids::system_program;
use solana_signer::Signer;

pub use error::ProgramDeployError;

use super::{DeployError, Deployer, Progress, Quote, Watch, batch::data_len, elf, loader::LoaderAccount};
use crate::{
    chain::Chain,
    engine::SharedSigner,
    plan::{
        DeployedFacts, MAX_PROGRAM_LEN, PlanContext, ProgramFacts, ProgramGoal, ProgramPlan,
        UpgradeAuthority, plan_program, program_buffer,
    },
    types::Lamports,
};

/// How long the next slot is waited for.
const SLOT_LIMIT: Duration = Duration::from_secs(60);

/// A program that is to be deployed.
#[derive(Clone)]
pub struct ProgramDeploy {
    /// Its bytes.
    pub elf: Arc<[u8]>,
    /// Its address.
    pub program: Address,
    /// Its keypair, which signs the first deploy and nothing else.
    pub keypair: Option<SharedSigner>,
    /// Bytes that there shall be room for, if more than its own.
    pub max_len: Option<usize>,
    /// How far it goes.
    pub goal: ProgramGoal,
}

/// What is done with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramAction {
    /// It is deployed for the first time.
    Deploy,
    /// Other bytes are there, and are replaced.
    Upgrade,
    /// Its bytes go into a buffer.
    Buffer,
    /// Its bytes are there; its upgrade authority changes, or a buffer that is left is closed.
    Settle,
    /// All is as it is to be.
    Nothing,
}

/// What a deploy takes, before anything is spent.
#[derive(Clone, Copy, Debug)]
pub struct ProgramQuote {
    /// Transactions, lamports, and what the payer has.
    pub quote: Quote,
    /// What is done.
    pub action: ProgramAction,
    /// Who may upgrade the program now; `None` if nobody, or if there is no program.
    pub authority: Option<Address>,
    /// Whether the program holds the bytes already.
    pub is_deployed: bool,
    /// The buffer that the program goes through.
    pub buffer: Address,
}

/// A program that is on chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeployedProgram {
    /// What was done first.
    pub action: ProgramAction,
    /// Who may upgrade the program now; `None` if nobody, or if there is no program.
    pub authority: Option<Address>,
    /// Whether the program holds the bytes. If not, the buffer does.
    pub is_deployed: bool,
    /// The buffer that they go through.
    pub buffer: Address,
    /// Transactions that landed; 0 if all was there already.
    pub transactions: u64,
}

/// What is to be done, and from where.
struct Survey {
    facts: ProgramFacts,
    plan: ProgramPlan,
    context: PlanContext,
}

impl Survey {
    fn action(&self) -> ProgramAction {
        match (self.plan.transactions().next(), &self.facts.deployed, &self.facts.goal) {
            (None, ..) => ProgramAction::Nothing,
            (Some(_), Some(deployed), _) if deployed.is_equal => ProgramAction::Settle,
            (Some(_), _, ProgramGoal::InBuffer { .. }) => ProgramAction::Buffer,
            (Some(_), Some(_), _) => ProgramAction::Upgrade,
            (Some(_), None, _) => ProgramAction::Deploy,
        }
    }

    fn authority(&self) -> Option<Address> {
        self.facts.deployed.and_then(|deployed| deployed.authority)
    }

    fn is_equal(&self) -> bool {
        self.facts.deployed.is_some_and(|deployed| deployed.is_equal)
    }
}

impl Deployer {
    /// What it takes to deploy a program, or what is left of it. The file has been checked as the cluster would.
    ///
    /// # Errors
    /// As [`Deployer::deploy_program`], but for the balance: [`Quote::check`] looks at that.
    pub async fn quote_program(&self, deploy: &ProgramDeploy) -> Result<ProgramQuote, ProgramDeployError> {
        self.check_file(deploy).await?;
        let survey = self.survey(deploy).await?;
        let quote = self.quote(survey.plan.price(&survey.context), &survey.context).await?;
        let (action, authority, buffer) = (survey.action(), survey.authority(), survey.facts.buffer);
        let is_deployed = survey.is_equal();
        Ok(ProgramQuote { quote, action, authority, is_deployed, buffer })
    }

    /// Deploys a program or upgrades it, or does what is left of that, and reads it back.
    ///
    /// # Errors
    /// [`ProgramDeployError`]; what has landed until then is found again by the next call with the same program and bytes.
    pub async fn deploy_program(
        &self,
        deploy: &ProgramDeploy,
        watch: &Watch,
    ) -> Result<DeployedProgram, ProgramDeployError> {
        self.check_file(deploy).await?;
        let attempts = self.settings.attempts.max(1);
        let (mut left, mut transactions, mut first, mut is_deployed) = (attempts, 0, None, false);
        loop {
            let survey = self.survey(deploy).await?;
            let action = *first.get_or_insert(survey.action());
            if survey.plan.transactions().next().is_none() {
                let (authority, buffer) = (survey.authority(), survey.facts.buffer);
                let is_deployed = survey.is_equal();
                return Ok(DeployedProgram { action, authority, is_deployed, buffer, transactions });
            }
            // To deploy it again would be to quarrel with whoever did.
            if is_deployed && !survey.is_equal() {
                return Err(ProgramDeployError::Overtaken { program: deploy.program });
            }
            let error = match self.land_program(deploy, survey, watch).await {
                // Looks again, so that nothing counts as deployed that was not read back.
                Ok(landed) => {
                    transactions += landed;
                    is_deployed = matches!(deploy.goal, ProgramGoal::Deployed(_));
                    DeployError::NotEqual
                }
                Err(error) if error.is_surprise() => {
                    watch.tell(Progress::Again { reason: crate::engine::chain_of(&error) });
                    error
                }
                Err(error) => return Err(error.into()),
            };
            if left == 0 {
                return Err(DeployError::Restless { attempts, source: Box::new(error) }.into());
            }
            left -= 1;
        }
    }

    async fn check_file(&self, deploy: &ProgramDeploy) -> Result<(), ProgramDeployError> {
        // What is no program at all needs no cluster to say so.
        elf::check_header(&deploy.elf)?;
        let features = elf::features(&self.chain).await.map_err(DeployError::from)?;
        Ok(elf::check(&deploy.elf, &features)?)
    }

    async fn land_program(
        &self,
        deploy: &ProgramDeploy,
        survey: Survey,
        watch: &Watch,
    ) -> Result<u64, DeployError> {
        let Survey { facts, plan, context } = survey;
        self.quote(plan.price(&context), &context).await?.check()?;
        let transactions = plan.transactions().count() as u64;
        watch.tell(Progress::Planned {
            transactions,
            bytes: plan.transactions().map(data_len).sum(),
            skipped: facts.elf.len() as u64 - plan.bytes,
        });
        let mut batch = self.batch(&context, watch);
        batch.keypairs.extend(deploy.keypair.clone());
        for round in plan.uploads {
            batch.land(round).await?;
        }
        let mut slot = facts.deployed.map_or(0, |deployed| deployed.slot);
        for transaction in plan.extension.into_iter().chain(plan.last) {
            // The loader changes a program once in a slot.
            self.chain.wait_for_slot(slot.saturating_add(1), SLOT_LIMIT).await?;
            slot = batch.land(vec![transaction]).await?;
        }
        Ok(transactions)
    }

    async fn survey(&self, deploy: &ProgramDeploy) -> Result<Survey, ProgramDeployError> {
        let (program, data) = (deploy.program, get_program_data_address(&deploy.program));
        let authority = self.signers.authority.pubkey();
        let buffer = program_buffer(&authority, &program, &deploy.elf).map_err(DeployError::from)?;
        let addresses = [program, data, buffer];
        let accounts = async { Ok(self.chain.accounts(&addresses).await?) };
        let (context, mut accounts) = tokio::try_join!(self.context(&addresses), accounts)?;
        let buffer_account = accounts.pop().flatten();
        let data_account = accounts.pop().flatten();
        let program_account = accounts.pop().flatten();

        let deployed = deployed(program, program_account.as_ref(), data, data_account.as_ref(), &deploy.elf)?;
        let facts = ProgramFacts {
            elf: deploy.elf.clone(),
            program,
            max_len: deploy.max_len,
            goal: deploy.goal,
            buffer,
            buffer_lamports: lamports(buffer_account.as_ref()),
            buffered: buffered(buffer, buffer_account.as_ref(), deploy.elf.len())?,
            program_lamports: lamports(program_account.as_ref()),
            deployed,
        };
        self.check_goal(deploy, &facts)?;
        let plan = plan_program(&facts, &context).map_err(DeployError::from)?;
        Ok(Survey { facts, plan, context })
    }

    /// Whether the authority can do what is asked for.
    fn check_goal(&self, deploy: &ProgramDeploy, facts: &ProgramFacts) -> Result<(), ProgramDeployError> {
        let (program, len, ours) = (deploy.program, deploy.elf.len(), self.signers.authority.pubkey());
        if let Some(max_len) = deploy.max_len
            && !(len..=MAX_PROGRAM_LEN).contains(&max_len)
        {
            return Err(ProgramDeployError::MaxLen { max_len, len });
        }
        let receiver = match deploy.goal {
            ProgramGoal::Deployed(_) => ours,
            ProgramGoal::InBuffer { handed_to } => handed_to.unwrap_or(ours),
        };
        if let Some((content, authority)) = &facts.buffered
            && *authority != ours
            && (*authority != receiver || content[..] != deploy.elf[..])
        {
            let (buffer, authority) = (facts.buffer, *authority);
            return Err(DeployError::WrongAuthority { buffer, authority, ours }.into());
        }
        let Some(deployed) = &facts.deployed else {
            return match (&deploy.goal, &deploy.keypair) {
                (ProgramGoal::InBuffer { .. }, _) => Ok(()),
                (_, Some(keypair)) if keypair.pubkey() == program => Ok(()),
                _ => Err(ProgramDeployError::NoKeypair(program)),
            };
        };
        let authority_changes = match deploy.goal {
            ProgramGoal::Deployed(UpgradeAuthority::Same) | ProgramGoal::InBuffer { .. } => false,
            ProgramGoal::Deployed(UpgradeAuthority::Other(new)) => deployed.authority != Some(new),
            ProgramGoal::Deployed(UpgradeAuthority::Nobody) => deployed.authority.is_some(),
        };
        if deployed.is_equal && !authority_changes {
            return Ok(());
        }
        match deployed.authority {
            None => Err(ProgramDeployError::Immutable(program)),
            Some(authority) if authority != receiver => {
                Err(ProgramDeployError::WrongAuthority { program, authority, ours: receiver })
            }
            Some(_) => Ok(()),
        }
    }
}

fn lamports(account: Option<&Account>) -> Lamports {
    Lamports(account.map_or(0, |account| account.lamports))
}

/// The program, if it exists. Its address may hold lamports without being one.
fn deployed(
    program: Address,
    account: Option<&Account>,
    data: Address,
    data_account: Option<&Account>,
    elf: &[u8],
) -> Result<Option<DeployedFacts>, ProgramDeployError> {
    let is_empty = |account: &Account| account.owner == system_program::ID && account.data.is_empty();
    let Some(account) = account.filter(|account| !is_empty(account)) else {
        return match data_account {
            None => Ok(None),
            Some(_) => Err(ProgramDeployError::DataExists { program, data }),
        };
    };
    if LoaderAccount::of(account) != Some(LoaderAccount::Program { data }) {
        return Err(ProgramDeployError::NotAProgram { address: program, owner: account.owner });
    }
    match data_account.map(|account| (account.lamports, LoaderAccount::of(account))) {
        Some((lamports, Some(LoaderAccount::ProgramData { slot, authority, content }))) => {
            let (max_len, is_equal) = (content.len(), holds(content, elf));
            Ok(Some(DeployedFacts { max_len, lamports: Lamports(lamports), slot, authority, is_equal }))
        }
        _ => Err(ProgramDeployError::Closed(program)),
    }
}

/// Whether the account of a program's bytes, which may be longer, holds these.
fn holds(content: &[u8], elf: &[u8]) -> bool {
    content.strip_prefix(elf).is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
}

/// The buffer's content and authority, if it exists. Its address may hold lamports without being one.
fn buffered(
    buffer: Address,
    account: Option<&Account>,
    len: usize,
) -> Result<Option<(Vec<u8>, Address)>, DeployError> {
    let Some(account) = account.filter(|account| !account.data.is_empty()) else { return Ok(None) };
    match LoaderAccount::of(account) {
        Some(LoaderAccount::Buffer { authority: Some(authority), content }) if content.len() == len => {
            Ok(Some((content.to_vec(), authority)))
        }
        _ => Err(DeployError::NotABuffer { address: buffer, owner: account.owner }),
    }
}
