// Administers an organisation with the official client, checks every answer against its types,
// and prints what it saw as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
)

// check holds an answer against its type: what the type requires is there, and what is there is
// of the type.
func check(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Pointer:
		check(v.Elem(), name)
		return
	case reflect.Slice:
		for i := range v.Len() {
			check(v.Index(i), name)
		}
		return
	case reflect.Struct:
	default:
		return
	}
	about := v.FieldByName("JSON")
	if !about.IsValid() {
		return
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		told, ok := about.FieldByName(field.Name), false
		var f respjson.Field
		if told.IsValid() {
			f, ok = told.Interface().(respjson.Field)
		}
		if !ok {
			continue
		}
		constant := field.Tag.Get("default")
		missing := f.Raw() == "" && (strings.Contains(field.Tag.Get("api"), "required") || constant != "")
		switch {
		case missing, f.Raw() != "" && f.Raw() != "null" && !f.Valid(), constant != "" && v.Field(i).String() != constant:
			log.Fatalf("%s.%s is %q", name, field.Name, f.Raw())
		case f.Valid():
			check(v.Field(i), name+"."+field.Name)
		}
	}
}

// must returns an answer that is of its type.
func must[T any](answer T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	check(reflect.ValueOf(answer), reflect.TypeFor[T]().String())
	return answer
}

// pages are what lists are read by.
type pages[T any] interface {
	Next() bool
	Current() T
	Err() error
}

func collect[T any](p pages[T]) (all []T) {
	for p.Next() {
		all = append(all, must(p.Current(), nil))
	}
	if err := p.Err(); err != nil {
		log.Fatal(err)
	}
	return all
}

// status returns the status of a failed call, 200 for a call that did not fail.
func status[T any](_ T, err error) int {
	if failure, ok := errors.AsType[*openai.Error](err); ok {
		return failure.StatusCode
	}
	return 200
}

func hold(holds bool, what string) {
	if !holds {
		log.Fatal(what)
	}
}

func main() {
	ctx, seen := context.Background(), map[string]any{}
	url := option.WithBaseURL(os.Args[1] + "/")
	client := openai.NewClient(url, option.WithAdminAPIKey("weir-admin"), option.WithMaxRetries(0))
	organization := client.Admin.Organization
	projects := organization.Projects
	ask := func(secret string) (*openai.ChatCompletion, error) {
		agent := openai.NewClient(url, option.WithAPIKey(secret), option.WithMaxRetries(0))
		return agent.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: "echo/echo-1", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}})
	}
	opens := func(secret string) bool {
		answer, err := ask(secret)
		return err == nil && answer.Choices[0].Message.Content != ""
	}

	named := openai.AdminOrganizationProjectNewParams{Name: "search"}
	project := must(projects.New(ctx, named))
	seen["taken"] = status(projects.New(ctx, named))
	seen["unknown"] = status(projects.Get(ctx, "proj_none"))
	seen["renamed"] = must(projects.Update(ctx, project.ID, openai.AdminOrganizationProjectUpdateParams{Name: openai.String("find")})).Name
	hold(must(projects.Get(ctx, project.ID)).Name == "find", "the name")

	accounts := projects.ServiceAccounts
	account := must(accounts.New(ctx, project.ID, openai.AdminOrganizationProjectServiceAccountNewParams{Name: "crawler"}))
	secret := account.APIKey.Value
	seen["opens"] = opens(secret)
	bare := must(accounts.New(ctx, project.ID, openai.AdminOrganizationProjectServiceAccountNewParams{Name: "bare", CreateServiceAccountOnly: openai.Bool(true)}))
	hold(!bare.JSON.APIKey.Valid(), "a key that nobody asked for")
	seen["accounts"] = len(collect(accounts.ListAutoPaging(ctx, project.ID, openai.AdminOrganizationProjectServiceAccountListParams{Limit: openai.Int(1)})))
	hold(must(accounts.Get(ctx, project.ID, account.ID)).Name == "crawler", "the account")
	hold(must(accounts.Update(ctx, project.ID, bare.ID, openai.AdminOrganizationProjectServiceAccountUpdateParams{Name: openai.String("other")})).Name == "other", "the name of the account")
	second := must(accounts.APIKeys.New(ctx, project.ID, bare.ID, openai.AdminOrganizationProjectServiceAccountAPIKeyNewParams{Name: openai.String("second"), ExpiresInSeconds: openai.Int(3600)}))
	third := must(accounts.APIKeys.New(ctx, project.ID, account.ID, openai.AdminOrganizationProjectServiceAccountAPIKeyNewParams{Name: openai.String("third"), Scopes: []string{"gateway"}}))
	seen["rotated"] = opens(third.Value)

	keys := collect(projects.APIKeys.ListAutoPaging(ctx, project.ID, openai.AdminOrganizationProjectAPIKeyListParams{Limit: openai.Int(1)}))
	seen["pages"] = len(keys)
	seen["owner"] = must(projects.APIKeys.Get(ctx, project.ID, account.APIKey.ID)).Owner.ServiceAccount.Name
	hold(!strings.Contains(keys[0].RawJSON(), secret) && must(projects.APIKeys.Get(ctx, project.ID, second.ID)).ExpiresAt > project.CreatedAt, "the keys")

	permit := func(mode openai.AdminOrganizationProjectModelPermissionUpdateParamsMode, model string) string {
		return string(must(projects.ModelPermissions.Update(ctx, project.ID, openai.AdminOrganizationProjectModelPermissionUpdateParams{Mode: mode, ModelIDs: []string{model}})).Mode)
	}
	permit(openai.AdminOrganizationProjectModelPermissionUpdateParamsModeDenyList, "echo/*")
	_, err := ask(secret)
	if failure, ok := errors.AsType[*openai.Error](err); ok {
		seen["denied"] = failure.Code
	}
	seen["models"] = permit(openai.AdminOrganizationProjectModelPermissionUpdateParamsModeAllowList, "echo-1")
	hold(must(projects.ModelPermissions.Get(ctx, project.ID)).ModelIDs[0] == "echo-1", "the models")
	seen["allowed"] = opens(secret)
	hold(must(projects.ModelPermissions.Delete(ctx, project.ID)).Deleted, "the end of the permissions")

	limit := must(projects.RateLimits.UpdateRateLimit(ctx, project.ID, "rl-openai/o3", openai.AdminOrganizationProjectRateLimitUpdateRateLimitParams{MaxRequestsPer1Minute: openai.Int(7)}))
	seen["limit"] = []any{limit.Model, limit.MaxRequestsPer1Minute}
	seen["limits"] = len(collect(projects.RateLimits.ListRateLimitsAutoPaging(ctx, project.ID, openai.AdminOrganizationProjectRateLimitListRateLimitsParams{})))

	seen["spend"] = must(projects.SpendLimit.Update(ctx, project.ID, openai.AdminOrganizationProjectSpendLimitUpdateParams{Currency: "USD", Interval: "month", ThresholdAmount: 1250})).ThresholdAmount
	hold(must(projects.SpendLimit.Get(ctx, project.ID)).Enforcement.Status == "inactive", "the enforcement")
	seen["spendOfAll"] = must(organization.SpendLimit.Update(ctx, openai.AdminOrganizationSpendLimitUpdateParams{Currency: "USD", Interval: "month", ThresholdAmount: 99900})).ThresholdAmount
	hold(must(organization.SpendLimit.Get(ctx)).ThresholdAmount == 99900, "the spend limit")
	mail := openai.AdminOrganizationProjectSpendAlertNewParamsNotificationChannel{Recipients: []string{"ada@example.com"}, SubjectPrefix: openai.String("[spend]")}
	newAlert := openai.AdminOrganizationProjectSpendAlertNewParams{Currency: "USD", Interval: "month", ThresholdAmount: 1000, NotificationChannel: mail}
	alert := must(projects.SpendAlerts.New(ctx, project.ID, newAlert))
	hold(must(projects.SpendAlerts.Get(ctx, project.ID, alert.ID)).NotificationChannel.Recipients[0] == "ada@example.com", "the alert")
	hold(must(projects.SpendAlerts.Update(ctx, project.ID, alert.ID, openai.AdminOrganizationProjectSpendAlertUpdateParams{
		Currency: "USD", Interval: "month", ThresholdAmount: 1250,
		NotificationChannel: openai.AdminOrganizationProjectSpendAlertUpdateParamsNotificationChannel{Recipients: mail.Recipients},
	})).ThresholdAmount == 1250, "the change of an alert")
	newAlert.ThresholdAmount = 500
	must(projects.SpendAlerts.New(ctx, project.ID, newAlert))
	amounts := []int64{}
	for _, a := range collect(projects.SpendAlerts.ListAutoPaging(ctx, project.ID, openai.AdminOrganizationProjectSpendAlertListParams{Limit: openai.Int(1)})) {
		amounts = append(amounts, a.ThresholdAmount)
	}
	seen["alerts"] = amounts
	hold(must(projects.SpendAlerts.Delete(ctx, project.ID, alert.ID)).Deleted, "the end of an alert")
	ofAll := must(organization.SpendAlerts.New(ctx, openai.AdminOrganizationSpendAlertNewParams{
		Currency: "USD", Interval: "month", ThresholdAmount: 1000,
		NotificationChannel: openai.AdminOrganizationSpendAlertNewParamsNotificationChannel{Recipients: mail.Recipients},
	}))
	hold(must(organization.SpendAlerts.Get(ctx, ofAll.ID)).ThresholdAmount == 1000 && must(organization.SpendAlerts.Delete(ctx, ofAll.ID)).Deleted, "an alert of all")
	hold(must(projects.SpendLimit.Delete(ctx, project.ID)).Deleted && must(organization.SpendLimit.Delete(ctx)).Deleted, "the end of the limits")
	seen["noSpend"] = status(projects.SpendLimit.Get(ctx, project.ID))

	types := []string{}
	for _, e := range collect(organization.AuditLogs.ListAutoPaging(ctx, openai.AdminOrganizationAuditLogListParams{
		Limit: openai.Int(1), ProjectIDs: []string{project.ID}, EffectiveAt: openai.AdminOrganizationAuditLogListParamsEffectiveAt{Gte: openai.Int(project.CreatedAt - 5)},
		EventTypes: []string{"project.created", "service_account.created", "api_key.created"},
	})) {
		types = append([]string{string(e.Type)}, types...)
	}
	seen["events"] = types

	start := time.Now().Unix() - 86400
	used := openai.AdminOrganizationUsageCompletionsParams{StartTime: start, ProjectIDs: []string{project.ID}, GroupBy: []string{"project_id", "model"}}
	var results []openai.AdminOrganizationUsageCompletionsResponseDataResultUnion
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && (len(results) == 0 || results[0].NumModelRequests != 3); time.Sleep(100 * time.Millisecond) {
		results = nil
		for _, bucket := range must(organization.Usage.Completions(ctx, used)).Data {
			results = append(results, bucket.Results...)
		}
	}
	seen["used"] = len(results) == 1 && results[0].NumModelRequests == 3 && results[0].InputTokens > 0
	seen["grouped"] = results[0].ProjectID == project.ID && results[0].Model == "echo-1"
	seen["cost"] = false
	for _, bucket := range must(organization.Usage.Costs(ctx, openai.AdminOrganizationUsageCostsParams{StartTime: start, GroupBy: []string{"line_item", "api_key_id"}})).Data {
		for _, r := range bucket.Results {
			seen["cost"] = seen["cost"] == true || r.Amount.Currency == "usd"
		}
	}
	byHour := openai.AdminOrganizationUsageCompletionsParams{StartTime: start, BucketWidth: "1h"}
	hours := must(organization.Usage.Completions(ctx, byHour))
	seen["buckets"] = len(hours.Data)
	byHour.Page = openai.String(hours.NextPage)
	hold(len(must(organization.Usage.Completions(ctx, byHour)).Data) > 0, "the next page")

	hold(must(projects.APIKeys.Delete(ctx, project.ID, third.ID)).Deleted, "the end of a key")
	seen["deleted"] = status(ask(third.Value))
	hold(must(accounts.Delete(ctx, project.ID, account.ID)).Deleted, "the end of the account")
	seen["accountDeleted"] = status(ask(secret))

	admin := must(organization.AdminAPIKeys.New(ctx, openai.AdminOrganizationAdminAPIKeyNewParams{Name: "terraform"}))
	seen["admins"] = len(collect(organization.AdminAPIKeys.ListAutoPaging(ctx, openai.AdminOrganizationAdminAPIKeyListParams{Limit: openai.Int(1)})))
	hold(must(organization.AdminAPIKeys.Get(ctx, admin.ID)).Name == "terraform" && must(organization.AdminAPIKeys.Delete(ctx, admin.ID)).Deleted, "the admin key")

	invites, users := organization.Invites, organization.Users
	invite := must(invites.New(ctx, openai.AdminOrganizationInviteNewParams{Email: "Ada@example.com", Role: "reader", Projects: []openai.AdminOrganizationInviteNewParamsProject{{ID: project.ID, Role: "member"}}}))
	hold(must(invites.Get(ctx, invite.ID)).Status == "pending", "the invitation")
	other := must(invites.New(ctx, openai.AdminOrganizationInviteNewParams{Email: "bo@example.com", Role: "owner"}))
	invited := collect(invites.ListAutoPaging(ctx, openai.AdminOrganizationInviteListParams{Limit: openai.Int(1)}))
	hold(len(invited) == 2 && invited[0].Projects[0].ID == project.ID, "the invitations")
	ada := collect(users.ListAutoPaging(ctx, openai.AdminOrganizationUserListParams{Emails: []string{"ada@example.com"}}))[0]
	seen["users"] = len(collect(users.ListAutoPaging(ctx, openai.AdminOrganizationUserListParams{Limit: openai.Int(1)})))
	seen["role"] = must(users.Update(ctx, ada.ID, openai.AdminOrganizationUserUpdateParams{Role: openai.String("owner")})).Role
	hold(must(users.Get(ctx, ada.ID)).Projects.Data[0].Name == "find", "the projects of a user")
	inProject := []string{}
	for _, u := range collect(projects.Users.ListAutoPaging(ctx, project.ID, openai.AdminOrganizationProjectUserListParams{})) {
		inProject = append(inProject, u.Email)
	}
	seen["inProject"] = inProject
	hold(must(projects.Users.New(ctx, project.ID, openai.AdminOrganizationProjectUserNewParams{Email: openai.String("bo@example.com"), Role: "member"})).Role == "member", "a user of a project")
	hold(must(projects.Users.Update(ctx, project.ID, ada.ID, openai.AdminOrganizationProjectUserUpdateParams{Role: openai.String("owner")})).Role == "owner", "the role in a project")
	hold(must(projects.Users.Get(ctx, project.ID, ada.ID)).Role == "owner" && must(projects.Users.Delete(ctx, project.ID, ada.ID)).Deleted, "the end of a membership")
	hold(must(invites.Delete(ctx, other.ID)).Deleted && must(users.Delete(ctx, ada.ID)).Deleted, "the end of members")
	seen["noUser"] = status(users.Get(ctx, ada.ID))
	memberEvents := []string{}
	for _, e := range collect(organization.AuditLogs.ListAutoPaging(ctx, openai.AdminOrganizationAuditLogListParams{ResourceIDs: []string{ada.ID}, EventTypes: []string{"user.added", "user.deleted"}})) {
		memberEvents = append(memberEvents, string(e.Type))
	}
	seen["memberEvents"] = memberEvents

	must(projects.New(ctx, openai.AdminOrganizationProjectNewParams{Name: "mail"}))
	seen["status"] = must(projects.Archive(ctx, project.ID)).Status
	hold(len(collect(projects.ListAutoPaging(ctx, openai.AdminOrganizationProjectListParams{}))) == 1, "the projects in use")
	seen["listed"] = len(collect(projects.ListAutoPaging(ctx, openai.AdminOrganizationProjectListParams{IncludeArchived: openai.Bool(true), Limit: openai.Int(1)})))
	text, err := json.Marshal(seen)
	hold(err == nil, "what was seen is no JSON")
	fmt.Println(string(text))
}
