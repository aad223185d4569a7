package llmcontrol

import (
	"net/http"
	"slices"

	"github.com/weirhq/weir/modules/internal/access"
)

// route is what one method on one path does, and what the description says of the route.
// Parameters and schemas are named.
type route struct {
	method, path string
	serve        func(*call) (data any, err error)
	id, summary  string
	query        []string
	body, answer string // "" for none
}

// endpoint is a route of a section.
type endpoint struct {
	route
	tag string
	// scope is what the key needs, "" for any key.
	scope string
	// status is the status of a successful answer.
	status int
}

func section(tag, scope string, status int, routes []route) (all []endpoint) {
	for _, r := range routes {
		all = append(all, endpoint{r, tag, scope, status})
	}
	return all
}

var usageParameters = []string{"StartTime", "EndTime", "BucketWidth", "GroupBy", "UsageLimit", "PageOfUsage", "ProjectIDs", "UserIDs", "KeyIDs"}

var endpoints = slices.Concat(
	section("keys", access.ScopeAdmin, http.StatusCreated, []route{
		{http.MethodPost, "/v1/keys", createKey,
			"createKey", "Creates a key, and answers its secret, once", nil, "Settings", "Key"},
	}),
	section("keys", access.ScopeAdmin, http.StatusOK, []route{
		{http.MethodGet, "/v1/keys", listKeys,
			"listKeys", "Lists keys, the oldest first", []string{"Limit", "Project", "After"}, "", "KeyPage"},
		{http.MethodGet, "/v1/keys/{id}", getKey,
			"getKey", "One key", nil, "", "Key"},
		{http.MethodPatch, "/v1/keys/{id}", updateKey,
			"updateKey", "Changes the settings that the body names", nil, "Settings", "Key"},
		{http.MethodDelete, "/v1/keys/{id}", deleteKey,
			"deleteKey", "Ends a key for good", nil, "", ""},
		{http.MethodPost, "/v1/keys/{id}/rotate", rotateKey,
			"rotateKey", "Gives a key another secret, beside those that it has for a while", nil, "Rotation", "Key"},
	}),
	section("audit", access.ScopeAdmin, http.StatusOK, []route{
		{http.MethodGet, "/v1/audit", listEvents,
			"listEvents", "Who changed what, and who read what others have sent, the newest first", []string{"Limit", "Key", "Before", "Reads"}, "", "EventPage"},
	}),
	section("budgets", access.ScopeAdmin, http.StatusOK, []route{
		{http.MethodGet, "/v1/budgets", listBudgets,
			"listBudgets", "What budgets count in the present windows, of the values that spent the most, by name", []string{"Limit", "After", "Values"}, "", "BudgetPage"},
		{http.MethodPost, "/v1/budgets", setBudget,
			"setBudget", "Makes the budget of a name, or replaces it", nil, "BudgetSettings", "Budget"},
		{http.MethodPost, "/v1/budgets/try", tryBudget,
			"tryBudget", "What a budget would have refused of recorded calls, call by call, without making it", nil, "BudgetTry", "BudgetTrial"},
		{http.MethodGet, "/v1/budgets/{name}", getBudget,
			"getBudget", "One budget", nil, "", "Budget"},
		{http.MethodPatch, "/v1/budgets/{name}", updateBudget,
			"updateBudget", "Changes the settings that the body names", nil, "BudgetSettings", "Budget"},
		{http.MethodDelete, "/v1/budgets/{name}", deleteBudget,
			"deleteBudget", "Ends a budget", nil, "", ""},
	}),
	section("alerts", access.ScopeAdmin, http.StatusOK, []route{
		{http.MethodGet, "/v1/alerts", listFirings,
			"listAlerts", "Lists alerts that fire or have fired, the newest first", []string{"Limit", "After", "AlertState"}, "", "AlertPage"},
		{http.MethodGet, "/v1/alerts/{id}", getFiring,
			"getAlert", "One alert, with its messages", nil, "", "Alert"},
		{http.MethodPost, "/v1/alerts/{id}/redeliver", redeliver,
			"redeliverAlert", "Sends the messages again that no channel has taken, or all if none is left, with the same ids", nil, "", "Alert"},
		{http.MethodGet, "/v1/alerts/rules", listAlertRules,
			"listAlertRules", "Lists the rules of the configuration, and those that were made while Weir runs", nil, "", "AlertRulePage"},
		{http.MethodPost, "/v1/alerts/rules", setAlertRule,
			"setAlertRule", "Makes the rule of a name, or replaces it", nil, "AlertRuleSettings", "AlertRule"},
		{http.MethodDelete, "/v1/alerts/rules/{name}", deleteAlertRule,
			"deleteAlertRule", "Ends a rule; its alerts are resolved", nil, "", ""},
		{http.MethodGet, "/v1/alerts/channels", listChannels,
			"listChannels", "Lists the channels of the configuration, without their addresses", nil, "", "ChannelPage"},
		{http.MethodPost, "/v1/alerts/channels/{name}/test", testChannel,
			"testChannel", "Sends a message to a channel, once, and answers what became of it", nil, "", "Delivery"},
	}),
	section("repricings", access.ScopeAdmin, http.StatusOK, []route{
		{http.MethodPost, "/v1/repricings", createRepricing,
			"createRepricing", "Computes the costs of the records that a filter matches again, at the prices of their time, or says what would change", nil, "RepricingSettings", "Repricing"},
	}),
	section("reconciliations", access.ScopeAdmin, http.StatusOK, []route{
		{http.MethodGet, "/v1/reconciliations/bills", listBills,
			"listBills", "Lists the bills of the configuration, without what names their keys", nil, "", "BillPage"},
		{http.MethodPost, "/v1/reconciliations", createReconciliation,
			"createReconciliation", "Compares the bill of a provider with the records, and says where each difference comes from", nil, "ReconciliationSettings", "Reconciliation"},
	}),
	section("erasures", access.ScopeAdmin, http.StatusAccepted, []route{
		{http.MethodPost, "/v1/erasures", createErasure,
			"createErasure", "Erases the bodies of the records that a filter matches now, or counts them", nil, "ErasureSettings", "Erasure"},
	}),
	section("erasures", access.ScopeAdmin, http.StatusOK, []route{
		{http.MethodGet, "/v1/erasures", listErasures,
			"listErasures", "Lists erasures, the newest first", []string{"Limit", "After"}, "", "ErasurePage"},
		{http.MethodGet, "/v1/erasures/{id}", getErasure,
			"getErasure", "One erasure: how far it is, then its certificate", nil, "", "Erasure"},
	}),
	section("holds", access.ScopeAdmin, http.StatusCreated, []route{
		{http.MethodPost, "/v1/holds", placeHold,
			"placeHold", "Keeps the records that a filter matches, now or later, from retention and from erasures", nil, "HoldSettings", "Hold"},
	}),
	section("holds", access.ScopeAdmin, http.StatusOK, []route{
		{http.MethodGet, "/v1/holds", listHolds,
			"listHolds", "Lists the holds in force, the newest first", []string{"Limit", "After"}, "", "HoldPage"},
		{http.MethodGet, "/v1/holds/{id}", getHold,
			"getHold", "One hold", nil, "", "Hold"},
		{http.MethodDelete, "/v1/holds/{id}", liftHold,
			"liftHold", "Lifts a hold: retention and erasures go on", nil, "", ""},
	}),
	section("organization", access.ScopeAdmin, http.StatusOK, []route{
		{http.MethodPost, organizationPath + "admin_api_keys", createAdminKey,
			"createAdminKey", "Creates a key that administers, and answers its value, once", nil, "AdminKeySettings", "AdminKey"},
		{http.MethodGet, organizationPath + "admin_api_keys", listAdminKeys,
			"listAdminKeys", "Lists the keys that administer", []string{"Limit", "AfterID", "Order"}, "", "AdminKeyPage"},
		{http.MethodGet, organizationPath + "admin_api_keys/{id}", getAdminKey,
			"getAdminKey", "One key that administers", nil, "", "AdminKey"},
		{http.MethodDelete, organizationPath + "admin_api_keys/{id}", deleteAdminKey,
			"deleteAdminKey", "Ends a key that administers, for good", nil, "", "AdminKeyDeleted"},
		{http.MethodPost, organizationPath + "projects", createProject,
			"createProject", "Creates a project", nil, "Named", "Project"},
		{http.MethodGet, organizationPath + "projects", listProjects,
			"listProjects", "Lists projects, the oldest first", []string{"Limit", "AfterID", "IncludeArchived"}, "", "ProjectPage"},
		{http.MethodGet, organizationPath + "projects/{project}", getProject,
			"getProject", "One project", nil, "", "Project"},
		{http.MethodPost, organizationPath + "projects/{project}", updateProject,
			"updateProject", "Changes the name of a project; records keep its first name", nil, "Named", "Project"},
		{http.MethodPost, projectsPath + "archive", archiveProject,
			"archiveProject", "Ends a project: its keys open nothing any more", nil, "", "Project"},
		{http.MethodPost, projectsPath + "service_accounts", createAccount,
			"createServiceAccount", "Creates a service account with a key, and answers the value of the key, once", nil, "AccountSettings", "ServiceAccountCreated"},
		{http.MethodGet, projectsPath + "service_accounts", listAccounts,
			"listServiceAccounts", "Lists the service accounts of a project", []string{"Limit", "AfterID"}, "", "ServiceAccountPage"},
		{http.MethodGet, projectsPath + "service_accounts/{id}", getAccount,
			"getServiceAccount", "One service account", nil, "", "ServiceAccount"},
		{http.MethodPost, projectsPath + "service_accounts/{id}", updateAccount,
			"updateServiceAccount", "Changes the name of a service account", nil, "AccountChange", "ServiceAccount"},
		{http.MethodDelete, projectsPath + "service_accounts/{id}", deleteAccount,
			"deleteServiceAccount", "Ends a service account, with its keys", nil, "", "Deleted"},
		{http.MethodPost, projectsPath + "service_accounts/{id}/api_keys", createAccountKey,
			"createServiceAccountKey", "Creates a key of a service account, and answers its value, once", nil, "AccountKeySettings", "AccountKey"},
		{http.MethodGet, projectsPath + "api_keys", listProjectKeys,
			"listProjectKeys", "Lists the keys of a project", []string{"Limit", "AfterID", "OwnerAccess"}, "", "ProjectKeyPage"},
		{http.MethodGet, projectsPath + "api_keys/{id}", getProjectKey,
			"getProjectKey", "One key of a project", nil, "", "ProjectKey"},
		{http.MethodPost, projectsPath + "api_keys/{id}", updateProjectKey,
			"updateProjectKey", "Changes the scopes or the end of a key", nil, "ProjectKeyChange", "ProjectKey"},
		{http.MethodDelete, projectsPath + "api_keys/{id}", deleteProjectKey,
			"deleteProjectKey", "Ends a key for good", nil, "", "Deleted"},
		{http.MethodGet, projectsPath + "model_permissions", getModels,
			"getModelPermissions", "Which models the keys of a project may call", nil, "", "ModelPermissions"},
		{http.MethodPost, projectsPath + "model_permissions", setModels,
			"setModelPermissions", "Allows some models, or refuses some", nil, "ModelPermissionsSettings", "ModelPermissions"},
		{http.MethodDelete, projectsPath + "model_permissions", deleteModels,
			"deleteModelPermissions", "Allows all models again", nil, "", "Deleted"},
		{http.MethodGet, projectsPath + "key_permissions", getKeyPermissions,
			"getKeyPermissions", "Who creates keys of their own in a project", nil, "", "KeyPermissions"},
		{http.MethodPost, projectsPath + "key_permissions", setKeyPermissions,
			"setKeyPermissions", "Allows members or keys of a project to create keys of their own", nil, "KeyPermissionsSettings", "KeyPermissions"},
		{http.MethodDelete, projectsPath + "key_permissions", deleteKeyPermissions,
			"deleteKeyPermissions", "Lets administrators alone create keys; those that exist stay", nil, "", "Deleted"},
		{http.MethodGet, projectsPath + "rate_limits", listRateLimits,
			"listRateLimits", "Lists the models of which a project may use so much alone", []string{"RateLimitCount", "AfterID", "BeforeID"}, "", "RateLimitPage"},
		{http.MethodPost, projectsPath + "rate_limits/{id}", setRateLimit,
			"setRateLimit", "Limits what a project may use of a model; the id is `rl-` and the model", nil, "RateLimitSettings", "RateLimit"},
		{http.MethodGet, projectsPath + "spend_limit", getSpendLimit,
			"getProjectSpendLimit", "What a project may spend in a month", nil, "", "SpendLimit"},
		{http.MethodPost, projectsPath + "spend_limit", setSpendLimit,
			"setProjectSpendLimit", "Limits what a project may spend in a month", nil, "SpendLimitSettings", "SpendLimit"},
		{http.MethodDelete, projectsPath + "spend_limit", deleteSpendLimit,
			"deleteProjectSpendLimit", "Ends the limit", nil, "", "Deleted"},
		{http.MethodGet, organizationPath + "spend_limit", getSpendLimit,
			"getSpendLimit", "What the organisation may spend in a month", nil, "", "SpendLimit"},
		{http.MethodPost, organizationPath + "spend_limit", setSpendLimit,
			"setSpendLimit", "Limits what the organisation may spend in a month", nil, "SpendLimitSettings", "SpendLimit"},
		{http.MethodDelete, organizationPath + "spend_limit", deleteSpendLimit,
			"deleteSpendLimit", "Ends the limit", nil, "", "Deleted"},
		{http.MethodGet, projectsPath + "spend_alerts", listAlerts,
			"listProjectSpendAlerts", "Lists the parts of the spend limit of a project at which Weir tells", []string{"Limit", "AfterID", "Order"}, "", "SpendAlertPage"},
		{http.MethodPost, projectsPath + "spend_alerts", createAlert,
			"createProjectSpendAlert", "Tells when so much of the spend limit of a project is spent; no mail is sent", nil, "SpendAlertSettings", "SpendAlert"},
		{http.MethodGet, projectsPath + "spend_alerts/{id}", getAlert,
			"getProjectSpendAlert", "One alert", nil, "", "SpendAlert"},
		{http.MethodPost, projectsPath + "spend_alerts/{id}", updateAlert,
			"updateProjectSpendAlert", "Changes an alert", nil, "SpendAlertSettings", "SpendAlert"},
		{http.MethodDelete, projectsPath + "spend_alerts/{id}", deleteAlert,
			"deleteProjectSpendAlert", "Ends an alert", nil, "", "Deleted"},
		{http.MethodGet, organizationPath + "spend_alerts", listAlerts,
			"listSpendAlerts", "Lists the parts of the spend limit of the organisation at which Weir tells", []string{"Limit", "AfterID", "Order"}, "", "SpendAlertPage"},
		{http.MethodPost, organizationPath + "spend_alerts", createAlert,
			"createSpendAlert", "Tells when so much of the spend limit of the organisation is spent; no mail is sent", nil, "SpendAlertSettings", "SpendAlert"},
		{http.MethodGet, organizationPath + "spend_alerts/{id}", getAlert,
			"getSpendAlert", "One alert", nil, "", "SpendAlert"},
		{http.MethodPost, organizationPath + "spend_alerts/{id}", updateAlert,
			"updateSpendAlert", "Changes an alert", nil, "SpendAlertSettings", "SpendAlert"},
		{http.MethodDelete, organizationPath + "spend_alerts/{id}", deleteAlert,
			"deleteSpendAlert", "Ends an alert", nil, "", "Deleted"},
		{http.MethodGet, organizationPath + "users", listUsers,
			"listUsers", "Lists the members of the organisation", []string{"Limit", "AfterID", "Emails"}, "", "UserPage"},
		{http.MethodGet, organizationPath + "users/{id}", getUser,
			"getUser", "One member", nil, "", "User"},
		{http.MethodPost, organizationPath + "users/{id}", updateUser,
			"updateUser", "Changes the role of a member", nil, "UserChange", "User"},
		{http.MethodDelete, organizationPath + "users/{id}", deleteUser,
			"deleteUser", "Ends a member, with the keys that the member owns", nil, "", "Deleted"},
		{http.MethodPost, organizationPath + "invites", createInvite,
			"createInvite", "Adds a member by email; no mail is sent", nil, "InviteSettings", "Invite"},
		{http.MethodGet, organizationPath + "invites", listInvites,
			"listInvites", "Lists the invitations, accepted by who has logged in", []string{"Limit", "AfterID"}, "", "InvitePage"},
		{http.MethodGet, organizationPath + "invites/{id}", getInvite,
			"getInvite", "One invitation", nil, "", "Invite"},
		{http.MethodDelete, organizationPath + "invites/{id}", deleteInvite,
			"deleteInvite", "Ends a member who has never logged in", nil, "", "Deleted"},
		{http.MethodGet, projectsPath + "users", listProjectUsers,
			"listProjectUsers", "Lists the members of a project", []string{"Limit", "AfterID"}, "", "ProjectUserPage"},
		{http.MethodPost, projectsPath + "users", createProjectUser,
			"createProjectUser", "Adds a member to a project", nil, "ProjectUserSettings", "ProjectUser"},
		{http.MethodGet, projectsPath + "users/{id}", getProjectUser,
			"getProjectUser", "One member of a project", nil, "", "ProjectUser"},
		{http.MethodPost, projectsPath + "users/{id}", setProjectUser,
			"updateProjectUser", "Changes the role of a member in a project", nil, "ProjectUserChange", "ProjectUser"},
		{http.MethodDelete, projectsPath + "users/{id}", deleteProjectUser,
			"deleteProjectUser", "Takes a member out of a project", nil, "", "Deleted"},
		{http.MethodGet, organizationPath + "audit_logs", listAuditLogs,
			"listAuditLogs", "Who changed what, the newest first", []string{"Limit", "AfterID", "EventTypes", "ActorIDs", "ResourceIDs", "ProjectIDs", "EffectiveAt"}, "", "AuditLogPage"},
		{http.MethodGet, organizationPath + "usage/completions", usage(completionUsage),
			"usageOfCompletions", "What calls that write text used, over time", append(usageParameters, "Models"), "", "UsagePage"},
		{http.MethodGet, organizationPath + "usage/embeddings", usage(embeddingUsage),
			"usageOfEmbeddings", "What embeddings used, over time", append(usageParameters, "Models"), "", "UsagePage"},
		{http.MethodGet, organizationPath + "usage/moderations", usage(moderationUsage),
			"usageOfModerations", "What moderations used, over time", append(usageParameters, "Models"), "", "UsagePage"},
		{http.MethodGet, organizationPath + "costs", usage(costUsage),
			"costs", "What calls cost, by day", append(usageParameters, "LineItems"), "", "UsagePage"},
	}),
	section("keys", "", http.StatusOK, []route{
		{http.MethodGet, "/v1/key", ownKey,
			"ownKey", "What the key or the token of the caller may do", nil, "", "Own"},
		{http.MethodGet, "/v1/key/keys", listOwnKeys,
			"listOwnKeys", "Lists the keys that the caller has created as their own, the oldest first", nil, "", "KeyPage"},
		{http.MethodPost, "/v1/key/keys/{id}/rotate", rotateOwnKey,
			"rotateOwnKey", "Gives a key that the caller has created, or the caller's key, another secret", nil, "Rotation", "Key"},
		{http.MethodDelete, "/v1/key/keys/{id}", deleteOwnKey,
			"deleteOwnKey", "Ends a key that the caller has created", nil, "", ""},
	}),
	section("keys", "", http.StatusCreated, []route{
		{http.MethodPost, "/v1/key/keys", createOwnKey,
			"createOwnKey", "Creates a key of the caller's own, which never does more than the caller, and answers its secret, once", nil, "OwnKeySettings", "Key"},
	}),
)
