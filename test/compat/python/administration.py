"""Administers an organisation with the official client, which checks every answer against
its types, and prints what it saw as JSON."""

import json
import sys
import time

import openai

(base_url,) = sys.argv[1:]
client = openai.OpenAI(admin_api_key="weir-admin", base_url=base_url, max_retries=0, _strict_response_validation=True)
organization = client.admin.organization
projects = organization.projects
seen = {}


def status(call, *args, **kwargs):
    """The status of a call that fails."""
    try:
        call(*args, **kwargs)
    except openai.APIStatusError as e:
        return e.status_code


def ask(secret):
    """Calls a model with a key."""
    with openai.OpenAI(api_key=secret, base_url=base_url, max_retries=0) as agent:
        return agent.chat.completions.create(model="echo/echo-1", messages=[{"role": "user", "content": "hi"}])


project = projects.create(name="search")
seen["taken"] = status(projects.create, name="search")
seen["unknown"] = status(projects.retrieve, "proj_none")
seen["renamed"] = projects.update(project.id, name="find").name
assert projects.retrieve(project.id).name == "find"

account = projects.service_accounts.create(project.id, name="crawler")
secret = account.api_key.value
seen["opens"] = ask(secret).choices[0].message.content != ""
bare = projects.service_accounts.create(project.id, name="bare", create_service_account_only=True)
assert bare.api_key is None
seen["accounts"] = len(list(projects.service_accounts.list(project.id, limit=1)))
assert projects.service_accounts.retrieve(account.id, project_id=project.id).name == "crawler"
assert projects.service_accounts.update(bare.id, project_id=project.id, name="other").name == "other"
second = projects.service_accounts.api_keys.create(bare.id, project_id=project.id, name="second", expires_in_seconds=3600)
third = projects.service_accounts.api_keys.create(account.id, project_id=project.id, name="third", scopes=["gateway"])
seen["rotated"] = ask(third.value).choices[0].message.content != ""

keys = list(projects.api_keys.list(project.id, limit=1))
seen["pages"] = len(keys)
seen["owner"] = projects.api_keys.retrieve(account.api_key.id, project_id=project.id).owner.service_account.name
assert secret not in str(keys) and projects.api_keys.retrieve(second.id, project_id=project.id).expires_at

permissions = projects.model_permissions
permissions.update(project.id, mode="deny_list", model_ids=["echo/*"])
try:
    ask(secret)
except openai.PermissionDeniedError as e:
    seen["denied"] = e.code
seen["models"] = permissions.update(project.id, mode="allow_list", model_ids=["echo-1"]).mode
assert permissions.retrieve(project.id).api_model_ids == ["echo-1"]
seen["allowed"] = ask(secret).choices[0].message.content != ""
assert permissions.delete(project.id).deleted

limit = projects.rate_limits.update_rate_limit("rl-openai/o3", project_id=project.id, max_requests_per_1_minute=7)
seen["limit"] = [limit.model, limit.max_requests_per_1_minute]
seen["limits"] = len(list(projects.rate_limits.list_rate_limits(project.id)))

seen["spend"] = projects.spend_limit.update(project.id, currency="USD", interval="month", threshold_amount=1250).threshold_amount
assert projects.spend_limit.retrieve(project.id).enforcement.status == "inactive"
seen["spendOfAll"] = organization.spend_limit.update(currency="USD", interval="month", threshold_amount=99900).threshold_amount
assert organization.spend_limit.retrieve().threshold_amount == 99900
mail = {"type": "email", "recipients": ["ada@example.com"], "subject_prefix": "[spend]"}
monthly = {"currency": "USD", "interval": "month", "notification_channel": mail}
for alerts, of, by in (projects.spend_alerts, [project.id], {"project_id": project.id}), (organization.spend_alerts, [], {}):
    alert = alerts.create(*of, threshold_amount=1000, **monthly)
    assert alerts.retrieve(alert.id, **by).notification_channel.recipients == ["ada@example.com"]
    assert alerts.update(alert.id, threshold_amount=1250, **monthly, **by).threshold_amount == 1250
    alerts.create(*of, threshold_amount=500, **monthly)
    seen["alerts"] = [a.threshold_amount for a in alerts.list(*of, limit=1)]
    assert alerts.delete(alert.id, **by).deleted
assert projects.spend_limit.delete(project.id).deleted and organization.spend_limit.delete().deleted
seen["noSpend"] = status(projects.spend_limit.retrieve, project.id)

events = organization.audit_logs.list(
    limit=1, project_ids=[project.id], effective_at={"gte": project.created_at - 5},
    event_types=["project.created", "service_account.created", "api_key.created"],
)
seen["events"] = [event.type for event in list(events)[::-1]]

start = int(time.time()) - 86400
deadline = time.monotonic() + 10
while True:
    usage = organization.usage.completions(start_time=start, project_ids=[project.id], group_by=["project_id", "model"])
    results = [r for bucket in usage.data for r in bucket.results]
    if results and results[0].num_model_requests == 3 or time.monotonic() > deadline:
        break
    time.sleep(0.1)
seen["used"] = len(results) == 1 and results[0].num_model_requests == 3 and results[0].input_tokens > 0
seen["grouped"] = results[0].project_id == project.id and results[0].model == "echo-1"
costs = organization.usage.costs(start_time=start, group_by=["line_item", "api_key_id"])
seen["cost"] = any(r.amount.currency == "usd" for bucket in costs.data for r in bucket.results)
hours = organization.usage.completions(start_time=start, bucket_width="1h")
seen["buckets"] = len(hours.data)
assert organization.usage.completions(start_time=start, bucket_width="1h", page=hours.next_page).data
organization.usage.embeddings(start_time=start)
organization.usage.moderations(start_time=start)

assert projects.api_keys.delete(third.id, project_id=project.id).deleted
seen["deleted"] = status(ask, third.value)
assert projects.service_accounts.delete(account.id, project_id=project.id).deleted
seen["accountDeleted"] = status(ask, secret)

admin = organization.admin_api_keys.create(name="terraform")
seen["admins"] = len(list(organization.admin_api_keys.list(limit=1)))
assert organization.admin_api_keys.retrieve(admin.id).name == "terraform" and organization.admin_api_keys.delete(admin.id).deleted

invite = organization.invites.create(email="Ada@example.com", role="reader", projects=[{"id": project.id, "role": "member"}])
assert organization.invites.retrieve(invite.id).status == "pending" and organization.invites.list(limit=1).data[0].projects[0].id == project.id
other = organization.invites.create(email="bo@example.com", role="owner")
assert [i.email for i in organization.invites.list(limit=1)] == ["ada@example.com", "bo@example.com"]
(ada,) = organization.users.list(emails=["ada@example.com"])
seen["users"] = len(list(organization.users.list(limit=1)))
seen["role"] = organization.users.update(ada.id, role="owner").role
assert organization.users.retrieve(ada.id).projects.data[0].name == "find"
users = projects.users
seen["inProject"] = [u.email for u in users.list(project.id)]
assert users.create(project.id, email="bo@example.com", role="member").role == "member"
assert users.update(ada.id, project_id=project.id, role="owner").role == "owner" == users.retrieve(ada.id, project_id=project.id).role
assert users.delete(ada.id, project_id=project.id).deleted and organization.invites.delete(other.id).deleted
assert list(users.list(project.id)) == [] and organization.users.delete(ada.id).deleted
seen["noUser"] = status(organization.users.retrieve, ada.id)
seen["memberEvents"] = [e.type for e in organization.audit_logs.list(resource_ids=[ada.id], event_types=["user.added", "user.deleted"])]

projects.create(name="mail")
seen["status"] = projects.archive(project.id).status
assert [p.name for p in projects.list()] == ["mail"]
seen["listed"] = len(list(projects.list(include_archived=True, limit=1)))
print(json.dumps(seen))
