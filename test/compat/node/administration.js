// Administers an organisation with the official client, and prints what it saw as JSON.
import OpenAI from 'openai'

const [baseURL] = process.argv.slice(2)
const { organization } = new OpenAI({ apiKey: null, adminAPIKey: 'weir-admin', baseURL, maxRetries: 0 }).admin
const { projects } = organization
const seen = {}

const collect = async (list) => {
  const all = []
  for await (const one of list) all.push(one)
  return all
}
const status = (call) => call.then(() => 200, (e) => e.status)
const check = (holds, what) => {
  if (!holds) throw new Error(what)
}
const ask = (secret) =>
  new OpenAI({ apiKey: secret, baseURL, maxRetries: 0 }).chat.completions.create({
    model: 'echo/echo-1', messages: [{ role: 'user', content: 'hi' }],
  })
const opens = async (secret) => (await ask(secret)).choices[0].message.content !== ''

const project = await projects.create({ name: 'search' })
const of = { project_id: project.id }
seen.taken = await status(projects.create({ name: 'search' }))
seen.unknown = await status(projects.retrieve('proj_none'))
seen.renamed = (await projects.update(project.id, { name: 'find' })).name
check((await projects.retrieve(project.id)).name === 'find', 'the name')

const accounts = projects.serviceAccounts
const account = await accounts.create(project.id, { name: 'crawler' })
const secret = account.api_key.value
seen.opens = await opens(secret)
const bare = await accounts.create(project.id, { name: 'bare', create_service_account_only: true })
check(bare.api_key === null, 'a key that nobody asked for')
seen.accounts = (await collect(accounts.list(project.id, { limit: 1 }))).length
check((await accounts.retrieve(account.id, of)).name === 'crawler', 'the account')
check((await accounts.update(bare.id, { ...of, name: 'other' })).name === 'other', 'the name of the account')
const second = await accounts.apiKeys.create(bare.id, { ...of, name: 'second', expires_in_seconds: 3600 })
const third = await accounts.apiKeys.create(account.id, { ...of, name: 'third', scopes: ['gateway'] })
seen.rotated = await opens(third.value)

const keys = await collect(projects.apiKeys.list(project.id, { limit: 1 }))
seen.pages = keys.length
seen.owner = (await projects.apiKeys.retrieve(account.api_key.id, of)).owner.service_account.name
check(!JSON.stringify(keys).includes(secret), 'a secret in a list')
check((await projects.apiKeys.retrieve(second.id, of)).expires_at > project.created_at, 'the end of a key')

const permissions = projects.modelPermissions
await permissions.update(project.id, { mode: 'deny_list', model_ids: ['echo/*'] })
await ask(secret).catch((e) => {
  if (e instanceof OpenAI.PermissionDeniedError) seen.denied = e.code
})
seen.models = (await permissions.update(project.id, { mode: 'allow_list', model_ids: ['echo-1'] })).mode
check((await permissions.retrieve(project.id)).model_ids[0] === 'echo-1', 'the models')
seen.allowed = await opens(secret)
check((await permissions.delete(project.id)).deleted, 'the end of the permissions')

const limit = await projects.rateLimits.updateRateLimit('rl-openai/o3', { ...of, max_requests_per_1_minute: 7 })
seen.limit = [limit.model, limit.max_requests_per_1_minute]
seen.limits = (await collect(projects.rateLimits.listRateLimits(project.id))).length

const spend = (threshold_amount) => ({ currency: 'USD', interval: 'month', threshold_amount })
seen.spend = (await projects.spendLimit.update(project.id, spend(1250))).threshold_amount
check((await projects.spendLimit.retrieve(project.id)).enforcement.status === 'inactive', 'the enforcement')
seen.spendOfAll = (await organization.spendLimit.update(spend(99900))).threshold_amount
check((await organization.spendLimit.retrieve()).threshold_amount === 99900, 'the spend limit')
const monthly = { ...spend(1000), notification_channel: { type: 'email', recipients: ['ada@example.com'], subject_prefix: '[spend]' } }
for (const [alerts, ids, by] of [[projects.spendAlerts, [project.id], of], [organization.spendAlerts, [], null]]) {
  const named = (params) => (by ? [{ ...by, ...params }] : params ? [params] : [])
  const alert = await alerts.create(...ids, monthly)
  check((await alerts.retrieve(alert.id, ...named())).notification_channel.recipients[0] === 'ada@example.com', 'the alert')
  check((await alerts.update(alert.id, ...named({ ...monthly, threshold_amount: 1250 }))).threshold_amount === 1250, 'the change of an alert')
  await alerts.create(...ids, { ...monthly, threshold_amount: 500 })
  seen.alerts = (await collect(alerts.list(...ids, { limit: 1 }))).map((a) => a.threshold_amount)
  check((await alerts.delete(alert.id, ...named())).deleted, 'the end of an alert')
}
check((await projects.spendLimit.delete(project.id)).deleted && (await organization.spendLimit.delete()).deleted, 'the end of the limits')
seen.noSpend = await status(projects.spendLimit.retrieve(project.id))

const events = await collect(organization.auditLogs.list({
  limit: 1, project_ids: [project.id], effective_at: { gte: project.created_at - 5 },
  event_types: ['project.created', 'service_account.created', 'api_key.created'],
}))
seen.events = events.map((e) => e.type).reverse()

const start_time = Math.floor(Date.now() / 1000) - 86400
const deadline = Date.now() + 10_000
let results
do {
  const usage = await organization.usage.completions({ start_time, project_ids: [project.id], group_by: ['project_id', 'model'] })
  results = usage.data.flatMap((bucket) => bucket.results)
  await new Promise((resolve) => setTimeout(resolve, 100))
} while (results[0]?.num_model_requests !== 3 && Date.now() < deadline)
seen.used = results.length === 1 && results[0].num_model_requests === 3 && results[0].input_tokens > 0
seen.grouped = results[0].project_id === project.id && results[0].model === 'echo-1'
const costs = await organization.usage.costs({ start_time, group_by: ['line_item', 'api_key_id'] })
seen.cost = costs.data.some((bucket) => bucket.results.some((r) => r.amount.currency === 'usd'))
const hours = await organization.usage.completions({ start_time, bucket_width: '1h' })
seen.buckets = hours.data.length
check((await organization.usage.completions({ start_time, bucket_width: '1h', page: hours.next_page })).data.length > 0, 'the next page')
await organization.usage.embeddings({ start_time })
await organization.usage.moderations({ start_time })

check((await projects.apiKeys.delete(third.id, of)).deleted, 'the end of a key')
seen.deleted = await status(ask(third.value))
check((await accounts.delete(account.id, of)).deleted, 'the end of the account')
seen.accountDeleted = await status(ask(secret))

const admin = await organization.adminAPIKeys.create({ name: 'terraform' })
seen.admins = (await collect(organization.adminAPIKeys.list({ limit: 1 }))).length
check((await organization.adminAPIKeys.retrieve(admin.id)).name === 'terraform' && (await organization.adminAPIKeys.delete(admin.id)).deleted, 'the admin key')

const { invites, users } = organization
const invite = await invites.create({ email: 'Ada@example.com', role: 'reader', projects: [{ id: project.id, role: 'member' }] })
check((await invites.retrieve(invite.id)).status === 'pending', 'the invitation')
const other = await invites.create({ email: 'bo@example.com', role: 'owner' })
check((await collect(invites.list({ limit: 1 }))).map((i) => i.email).join() === 'ada@example.com,bo@example.com', 'the invitations')
const [ada] = await collect(users.list({ emails: ['ada@example.com'] }))
seen.users = (await collect(users.list({ limit: 1 }))).length
seen.role = (await users.update(ada.id, { role: 'owner' })).role
check((await users.retrieve(ada.id)).projects.data[0].name === 'find', 'the projects of a user')
seen.inProject = (await collect(projects.users.list(project.id))).map((u) => u.email)
check((await projects.users.create(project.id, { email: 'bo@example.com', role: 'member' })).role === 'member', 'a user of a project')
await projects.users.update(ada.id, { ...of, role: 'owner' })
check((await projects.users.retrieve(ada.id, of)).role === 'owner', 'the role in a project')
check((await projects.users.delete(ada.id, of)).deleted && (await invites.delete(other.id)).deleted, 'the end of a membership')
check((await collect(projects.users.list(project.id))).length === 0 && (await users.delete(ada.id)).deleted, 'the end of a user')
seen.noUser = await status(users.retrieve(ada.id))
const memberEvents = await collect(organization.auditLogs.list({ resource_ids: [ada.id], event_types: ['user.added', 'user.deleted'] }))
seen.memberEvents = memberEvents.map((e) => e.type)

await projects.create({ name: 'mail' })
seen.status = (await projects.archive(project.id)).status
check((await collect(projects.list())).map((p) => p.name).join() === 'mail', 'the projects in use')
seen.listed = (await collect(projects.list({ include_archived: true, limit: 1 }))).length
console.log(JSON.stringify(seen))
