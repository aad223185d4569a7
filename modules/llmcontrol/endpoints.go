package llmcontrol

import (
	"net/http"

	"github.com/weirhq/weir/modules/llmapp"
)

// endpoint is what one method on one path does.
type endpoint struct {
	method, path string
	// scope is what the key needs, "" for any key.
	scope string
	serve func(*call) (data any, err error)
	// status is that of success.
	status int
	about
}

// about is what the description says of an endpoint. Parameters and schemas are named.
type about struct {
	id, tag, summary string
	query            []string
	body, answer     string // "" for none
}

var endpoints = []endpoint{
	{http.MethodPost, "/v1/keys", llmapp.ScopeAdmin, createKey, http.StatusCreated, about{
		"createKey", "keys", "Creates a key, and answers its secret, once", nil, "Settings", "Key",
	}},
	{http.MethodGet, "/v1/keys", llmapp.ScopeAdmin, listKeys, http.StatusOK, about{
		"listKeys", "keys", "Lists keys, the oldest first", []string{"Limit", "Project", "After"}, "", "KeyPage",
	}},
	{http.MethodGet, "/v1/keys/{id}", llmapp.ScopeAdmin, getKey, http.StatusOK, about{
		"getKey", "keys", "One key", nil, "", "Key",
	}},
	{http.MethodPatch, "/v1/keys/{id}", llmapp.ScopeAdmin, updateKey, http.StatusOK, about{
		"updateKey", "keys", "Changes the settings that the body names", nil, "Settings", "Key",
	}},
	{http.MethodDelete, "/v1/keys/{id}", llmapp.ScopeAdmin, deleteKey, http.StatusOK, about{
		"deleteKey", "keys", "Ends a key for good", nil, "", "",
	}},
	{http.MethodPost, "/v1/keys/{id}/rotate", llmapp.ScopeAdmin, rotateKey, http.StatusOK, about{
		"rotateKey", "keys", "Gives a key another secret, beside those that it has for a while", nil, "Rotation", "Key",
	}},
	{http.MethodGet, "/v1/audit", llmapp.ScopeAdmin, listEvents, http.StatusOK, about{
		"listEvents", "audit", "Who changed what, the newest first", []string{"Limit", "Key", "Before"}, "", "EventPage",
	}},
	{http.MethodGet, "/v1/budgets", llmapp.ScopeAdmin, listBudgets, http.StatusOK, about{
		"listBudgets", "budgets", "What budgets count in the present windows, of the values that spent the most", []string{"Limit"}, "", "BudgetPage",
	}},
	{http.MethodPost, "/v1/budgets", llmapp.ScopeAdmin, setBudget, http.StatusOK, about{
		"setBudget", "budgets", "Makes the budget of a name, or replaces it", nil, "BudgetSettings", "Budget",
	}},
	{http.MethodGet, "/v1/budgets/{name}", llmapp.ScopeAdmin, getBudget, http.StatusOK, about{
		"getBudget", "budgets", "One budget", nil, "", "Budget",
	}},
	{http.MethodPatch, "/v1/budgets/{name}", llmapp.ScopeAdmin, updateBudget, http.StatusOK, about{
		"updateBudget", "budgets", "Changes the settings that the body names", nil, "BudgetSettings", "Budget",
	}},
	{http.MethodDelete, "/v1/budgets/{name}", llmapp.ScopeAdmin, deleteBudget, http.StatusOK, about{
		"deleteBudget", "budgets", "Ends a budget", nil, "", "",
	}},
	{http.MethodPost, organizationPath + "admin_api_keys", llmapp.ScopeAdmin, createAdminKey, http.StatusOK, about{
		"createAdminKey", "organization", "Creates a key that administers, and answers its value, once", nil, "AdminKeySettings", "AdminKey",
	}},
	{http.MethodGet, organizationPath + "admin_api_keys", llmapp.ScopeAdmin, listAdminKeys, http.StatusOK, about{
		"listAdminKeys", "organization", "Lists the keys that administer", []string{"Limit", "AfterID", "Order"}, "", "AdminKeyPage",
	}},
	{http.MethodGet, organizationPath + "admin_api_keys/{id}", llmapp.ScopeAdmin, getAdminKey, http.StatusOK, about{
		"getAdminKey", "organization", "One key that administers", nil, "", "AdminKey",
	}},
	{http.MethodDelete, organizationPath + "admin_api_keys/{id}", llmapp.ScopeAdmin, deleteAdminKey, http.StatusOK, about{
		"deleteAdminKey", "organization", "Ends a key that administers, for good", nil, "", "AdminKeyDeleted",
	}},
	{http.MethodPost, organizationPath + "projects", llmapp.ScopeAdmin, createProject, http.StatusOK, about{
		"createProject", "organization", "Creates a project", nil, "Named", "Project",
	}},
	{http.MethodGet, organizationPath + "projects", llmapp.ScopeAdmin, listProjects, http.StatusOK, about{
		"listProjects", "organization", "Lists projects, the oldest first", []string{"Limit", "AfterID", "IncludeArchived"}, "", "ProjectPage",
	}},
	{http.MethodGet, organizationPath + "projects/{project}", llmapp.ScopeAdmin, getProject, http.StatusOK, about{
		"getProject", "organization", "One project", nil, "", "Project",
	}},
	{http.MethodPost, organizationPath + "projects/{project}", llmapp.ScopeAdmin, updateProject, http.StatusOK, about{
		"updateProject", "organization", "Changes the name of a project; records keep its first name", nil, "Named", "Project",
	}},
	{http.MethodPost, projectsPath + "archive", llmapp.ScopeAdmin, archiveProject, http.StatusOK, about{
		"archiveProject", "organization", "Ends a project: its keys open nothing any more", nil, "", "Project",
	}},
	{http.MethodPost, projectsPath + "service_accounts", llmapp.ScopeAdmin, createAccount, http.StatusOK, about{
		"createServiceAccount", "organization", "Creates a service account with a key, and answers the value of the key, once", nil, "AccountSettings", "ServiceAccountCreated",
	}},
	{http.MethodGet, projectsPath + "service_accounts", llmapp.ScopeAdmin, listAccounts, http.StatusOK, about{
		"listServiceAccounts", "organization", "Lists the service accounts of a project", []string{"Limit", "AfterID"}, "", "ServiceAccountPage",
	}},
	{http.MethodGet, projectsPath + "service_accounts/{id}", llmapp.ScopeAdmin, getAccount, http.StatusOK, about{
		"getServiceAccount", "organization", "One service account", nil, "", "ServiceAccount",
	}},
	{http.MethodPost, projectsPath + "service_accounts/{id}", llmapp.ScopeAdmin, updateAccount, http.StatusOK, about{
		"updateServiceAccount", "organization", "Changes the name of a service account", nil, "AccountChange", "ServiceAccount",
	}},
	{http.MethodDelete, projectsPath + "service_accounts/{id}", llmapp.ScopeAdmin, deleteAccount, http.StatusOK, about{
		"deleteServiceAccount", "organization", "Ends a service account, with its keys", nil, "", "Deleted",
	}},
	{http.MethodPost, projectsPath + "service_accounts/{id}/api_keys", llmapp.ScopeAdmin, createAccountKey, http.StatusOK, about{
		"createServiceAccountKey", "organization", "Creates a key of a service account, and answers its value, once", nil, "AccountKeySettings", "AccountKey",
	}},
	{http.MethodGet, projectsPath + "api_keys", llmapp.ScopeAdmin, listProjectKeys, http.StatusOK, about{
		"listProjectKeys", "organization", "Lists the keys of a project", []string{"Limit", "AfterID", "OwnerAccess"}, "", "ProjectKeyPage",
	}},
	{http.MethodGet, projectsPath + "api_keys/{id}", llmapp.ScopeAdmin, getProjectKey, http.StatusOK, about{
		"getProjectKey", "organization", "One key of a project", nil, "", "ProjectKey",
	}},
	{http.MethodPost, projectsPath + "api_keys/{id}", llmapp.ScopeAdmin, updateProjectKey, http.StatusOK, about{
		"updateProjectKey", "organization", "Changes the scopes or the end of a key", nil, "ProjectKeyChange", "ProjectKey",
	}},
	{http.MethodDelete, projectsPath + "api_keys/{id}", llmapp.ScopeAdmin, deleteProjectKey, http.StatusOK, about{
		"deleteProjectKey", "organization", "Ends a key for good", nil, "", "Deleted",
	}},
	{http.MethodGet, projectsPath + "model_permissions", llmapp.ScopeAdmin, getModels, http.StatusOK, about{
		"getModelPermissions", "organization", "Which models the keys of a project may call", nil, "", "ModelPermissions",
	}},
	{http.MethodPost, projectsPath + "model_permissions", llmapp.ScopeAdmin, setModels, http.StatusOK, about{
		"setModelPermissions", "organization", "Allows some models, or refuses some", nil, "ModelPermissionsSettings", "ModelPermissions",
	}},
	{http.MethodDelete, projectsPath + "model_permissions", llmapp.ScopeAdmin, deleteModels, http.StatusOK, about{
		"deleteModelPermissions", "organization", "Allows all models again", nil, "", "Deleted",
	}},
	{http.MethodGet, projectsPath + "rate_limits", llmapp.ScopeAdmin, listRateLimits, http.StatusOK, about{
		"listRateLimits", "organization", "Lists the models of which a project may use so much alone", []string{"Limit", "AfterID", "BeforeID"}, "", "RateLimitPage",
	}},
	{http.MethodPost, projectsPath + "rate_limits/{id}", llmapp.ScopeAdmin, setRateLimit, http.StatusOK, about{
		"setRateLimit", "organization", "Limits what a project may use of a model; the id is `rl-` and the model", nil, "RateLimitSettings", "RateLimit",
	}},
	{http.MethodGet, projectsPath + "spend_limit", llmapp.ScopeAdmin, getSpendLimit, http.StatusOK, about{
		"getProjectSpendLimit", "organization", "What a project may spend in a month", nil, "", "SpendLimit",
	}},
	{http.MethodPost, projectsPath + "spend_limit", llmapp.ScopeAdmin, setSpendLimit, http.StatusOK, about{
		"setProjectSpendLimit", "organization", "Limits what a project may spend in a month", nil, "SpendLimitSettings", "SpendLimit",
	}},
	{http.MethodDelete, projectsPath + "spend_limit", llmapp.ScopeAdmin, deleteSpendLimit, http.StatusOK, about{
		"deleteProjectSpendLimit", "organization", "Ends the limit", nil, "", "Deleted",
	}},
	{http.MethodGet, organizationPath + "spend_limit", llmapp.ScopeAdmin, getSpendLimit, http.StatusOK, about{
		"getSpendLimit", "organization", "What the organisation may spend in a month", nil, "", "SpendLimit",
	}},
	{http.MethodPost, organizationPath + "spend_limit", llmapp.ScopeAdmin, setSpendLimit, http.StatusOK, about{
		"setSpendLimit", "organization", "Limits what the organisation may spend in a month", nil, "SpendLimitSettings", "SpendLimit",
	}},
	{http.MethodDelete, organizationPath + "spend_limit", llmapp.ScopeAdmin, deleteSpendLimit, http.StatusOK, about{
		"deleteSpendLimit", "organization", "Ends the limit", nil, "", "Deleted",
	}},
	{http.MethodGet, projectsPath + "spend_alerts", llmapp.ScopeAdmin, listAlerts, http.StatusOK, about{
		"listProjectSpendAlerts", "organization", "Lists the parts of the spend limit of a project at which Weir tells", []string{"Limit", "AfterID", "Order"}, "", "SpendAlertPage",
	}},
	{http.MethodPost, projectsPath + "spend_alerts", llmapp.ScopeAdmin, createAlert, http.StatusOK, about{
		"createProjectSpendAlert", "organization", "Tells when so much of the spend limit of a project is spent; no mail is sent", nil, "SpendAlertSettings", "SpendAlert",
	}},
	{http.MethodGet, projectsPath + "spend_alerts/{id}", llmapp.ScopeAdmin, getAlert, http.StatusOK, about{
		"getProjectSpendAlert", "organization", "One alert", nil, "", "SpendAlert",
	}},
	{http.MethodPost, projectsPath + "spend_alerts/{id}", llmapp.ScopeAdmin, updateAlert, http.StatusOK, about{
		"updateProjectSpendAlert", "organization", "Changes an alert", nil, "SpendAlertSettings", "SpendAlert",
	}},
	{http.MethodDelete, projectsPath + "spend_alerts/{id}", llmapp.ScopeAdmin, deleteAlert, http.StatusOK, about{
		"deleteProjectSpendAlert", "organization", "Ends an alert", nil, "", "Deleted",
	}},
	{http.MethodGet, organizationPath + "spend_alerts", llmapp.ScopeAdmin, listAlerts, http.StatusOK, about{
		"listSpendAlerts", "organization", "Lists the parts of the spend limit of the organisation at which Weir tells", []string{"Limit", "AfterID", "Order"}, "", "SpendAlertPage",
	}},
	{http.MethodPost, organizationPath + "spend_alerts", llmapp.ScopeAdmin, createAlert, http.StatusOK, about{
		"createSpendAlert", "organization", "Tells when so much of the spend limit of the organisation is spent; no mail is sent", nil, "SpendAlertSettings", "SpendAlert",
	}},
	{http.MethodGet, organizationPath + "spend_alerts/{id}", llmapp.ScopeAdmin, getAlert, http.StatusOK, about{
		"getSpendAlert", "organization", "One alert", nil, "", "SpendAlert",
	}},
	{http.MethodPost, organizationPath + "spend_alerts/{id}", llmapp.ScopeAdmin, updateAlert, http.StatusOK, about{
		"updateSpendAlert", "organization", "Changes an alert", nil, "SpendAlertSettings", "SpendAlert",
	}},
	{http.MethodDelete, organizationPath + "spend_alerts/{id}", llmapp.ScopeAdmin, deleteAlert, http.StatusOK, about{
		"deleteSpendAlert", "organization", "Ends an alert", nil, "", "Deleted",
	}},
	{http.MethodGet, organizationPath + "users", llmapp.ScopeAdmin, listUsers, http.StatusOK, about{
		"listUsers", "organization", "Lists the members of the organisation", []string{"Limit", "AfterID", "Emails"}, "", "UserPage",
	}},
	{http.MethodGet, organizationPath + "users/{id}", llmapp.ScopeAdmin, getUser, http.StatusOK, about{
		"getUser", "organization", "One member", nil, "", "User",
	}},
	{http.MethodPost, organizationPath + "users/{id}", llmapp.ScopeAdmin, updateUser, http.StatusOK, about{
		"updateUser", "organization", "Changes the role of a member", nil, "UserChange", "User",
	}},
	{http.MethodDelete, organizationPath + "users/{id}", llmapp.ScopeAdmin, deleteUser, http.StatusOK, about{
		"deleteUser", "organization", "Ends a member, with the keys that the member owns", nil, "", "Deleted",
	}},
	{http.MethodPost, organizationPath + "invites", llmapp.ScopeAdmin, createInvite, http.StatusOK, about{
		"createInvite", "organization", "Adds a member by email; no mail is sent", nil, "InviteSettings", "Invite",
	}},
	{http.MethodGet, organizationPath + "invites", llmapp.ScopeAdmin, listInvites, http.StatusOK, about{
		"listInvites", "organization", "Lists the invitations, accepted by who has logged in", []string{"Limit", "AfterID"}, "", "InvitePage",
	}},
	{http.MethodGet, organizationPath + "invites/{id}", llmapp.ScopeAdmin, getInvite, http.StatusOK, about{
		"getInvite", "organization", "One invitation", nil, "", "Invite",
	}},
	{http.MethodDelete, organizationPath + "invites/{id}", llmapp.ScopeAdmin, deleteInvite, http.StatusOK, about{
		"deleteInvite", "organization", "Ends a member who has never logged in", nil, "", "Deleted",
	}},
	{http.MethodGet, projectsPath + "users", llmapp.ScopeAdmin, listProjectUsers, http.StatusOK, about{
		"listProjectUsers", "organization", "Lists the members of a project", []string{"Limit", "AfterID"}, "", "ProjectUserPage",
	}},
	{http.MethodPost, projectsPath + "users", llmapp.ScopeAdmin, createProjectUser, http.StatusOK, about{
		"createProjectUser", "organization", "Adds a member to a project", nil, "ProjectUserSettings", "ProjectUser",
	}},
	{http.MethodGet, projectsPath + "users/{id}", llmapp.ScopeAdmin, getProjectUser, http.StatusOK, about{
		"getProjectUser", "organization", "One member of a project", nil, "", "ProjectUser",
	}},
	{http.MethodPost, projectsPath + "users/{id}", llmapp.ScopeAdmin, setProjectUser, http.StatusOK, about{
		"updateProjectUser", "organization", "Changes the role of a member in a project", nil, "ProjectUserChange", "ProjectUser",
	}},
	{http.MethodDelete, projectsPath + "users/{id}", llmapp.ScopeAdmin, deleteProjectUser, http.StatusOK, about{
		"deleteProjectUser", "organization", "Takes a member out of a project", nil, "", "Deleted",
	}},
	{http.MethodGet, organizationPath + "audit_logs", llmapp.ScopeAdmin, listAuditLogs, http.StatusOK, about{
		"listAuditLogs", "organization", "Who changed what, the newest first", []string{"Limit", "AfterID", "EventTypes", "ActorIDs", "ResourceIDs", "ProjectIDs", "EffectiveAt"}, "", "AuditLogPage",
	}},
	{http.MethodGet, organizationPath + "usage/completions", llmapp.ScopeAdmin, usage(completionUsage), http.StatusOK, about{
		"usageOfCompletions", "organization", "What calls that write text used, over time", []string{"StartTime", "EndTime", "BucketWidth", "GroupBy", "UsageLimit", "PageOfUsage", "ProjectIDs", "UserIDs", "KeyIDs", "Models"}, "", "UsagePage",
	}},
	{http.MethodGet, organizationPath + "usage/embeddings", llmapp.ScopeAdmin, usage(embeddingUsage), http.StatusOK, about{
		"usageOfEmbeddings", "organization", "What embeddings used, over time", []string{"StartTime", "EndTime", "BucketWidth", "GroupBy", "UsageLimit", "PageOfUsage", "ProjectIDs", "UserIDs", "KeyIDs", "Models"}, "", "UsagePage",
	}},
	{http.MethodGet, organizationPath + "usage/moderations", llmapp.ScopeAdmin, usage(moderationUsage), http.StatusOK, about{
		"usageOfModerations", "organization", "What moderations used, over time", []string{"StartTime", "EndTime", "BucketWidth", "GroupBy", "UsageLimit", "PageOfUsage", "ProjectIDs", "UserIDs", "KeyIDs", "Models"}, "", "UsagePage",
	}},
	{http.MethodGet, organizationPath + "costs", llmapp.ScopeAdmin, usage(costUsage), http.StatusOK, about{
		"costs", "organization", "What calls cost, by day", []string{"StartTime", "EndTime", "BucketWidth", "GroupBy", "UsageLimit", "PageOfUsage", "ProjectIDs", "UserIDs", "KeyIDs", "LineItems"}, "", "UsagePage",
	}},
	{http.MethodGet, "/v1/key", "", ownKey, http.StatusOK, about{
		"ownKey", "keys", "What the key or the token of the caller may do", nil, "", "Own",
	}},
}
