package llmquery

import (
	"net/http"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/openapi"
)

// endpoints are the methods of each path, by its http.ServeMux pattern, with what GET
// /openapi.json says of each method.
var endpoints = map[string]map[string]endpoint{
	"/v1/request/query-clickhouse": {
		http.MethodPost: {access.ScopeMetrics, queryRequestsBulk, manyRecords, about{
			id: "queryRequests", tag: "requests", summary: "Lists requests",
			body: "RequestQuery", example: `{"filter": {"left": {"request_response_rmt": {"model": {"contains": "gpt"}}}, "operator": "and", "right": {"request_response_rmt": {"cost": {"gte": 0.01}}}}, "sort": {"cost": "desc"}, "limit": 20}`,
			answer: warned(page(list("Request"))), fails: []string{"500", "504"},
		}},
	},
	"/v1/request/query": {
		http.MethodPost: {access.ScopeMetrics, queryRequests, manyRecords, about{
			id: "queryRequestsLegacy", tag: "requests", summary: "Lists requests, with the legacy filter groups too",
			body: "LegacyRequestQuery", example: `{"filter": {"request": {"user_id": {"equals": "ada"}}}}`,
			answer: warned(page(list("Request"))), fails: []string{"500", "504"},
		}},
	},
	"/v1/request/search": {
		http.MethodPost: {access.ScopeMetrics, searchRequests, aStream, about{
			id: "searchRequests", tag: "requests", summary: "Lists requests, the newest first, as they are found",
			text: "For filters of content, which read every body: a line tells how far the search is, and has what was found since the line before. The search ends with the client, at `limit`, or when all has been searched. One that cannot go on breaks the connection.",
			body: "SearchQuery", example: `{"filter": {"request_response_rmt": {"request_body": {"contains": "refund"}}}, "includeContent": false}`,
			answer: answers("application/x-ndjson", schema("SearchLine")), fails: []string{"500", "504"},
		}},
	},
	"/v1/request/tail": {
		http.MethodGet: {access.ScopeMetrics, tailRequests, aStream, about{
			id: "tailRequests", tag: "requests", summary: "Requests as they are recorded, as server-sent events",
			text:   "Each event has a record without its bodies, after its end. A client that comes again with the header `Last-Event-ID`, as browsers do, goes on behind that record. At most 200 requests a second are sent; the event `skipped` says how many were left out, null if that is not known.",
			answer: answers("text/event-stream", openapi.Object{"type": "string"}), fails: []string{"400"},
		}},
	},
	"/v1/request/{id}": {
		http.MethodGet: {access.ScopeMetrics, getRequest, oneRecord, about{
			id: "getRequest", tag: "requests", summary: "One request, with its inputs",
			answer: data(schema("Request")), fails: []string{"404", "500", "503"},
		}},
	},
	"/v1/request/{id}/score": {
		http.MethodPost: {access.ScopeWrite, addScores, oneRecord, about{
			id: "addScores", tag: "requests", summary: "Adds scores to a request",
			body: "Scores", example: `{"scores": {"accuracy": 0.9, "helpful": true}}`,
			status: http.StatusCreated, fails: []string{"404", "500", "503"},
		}},
	},
	"/v1/request/{id}/score/{name}": {
		http.MethodDelete: {access.ScopeWrite, removeScore, oneRecord, about{
			id: "removeScore", tag: "requests", summary: "Removes a score of a request",
			text:  "The score `service-score-feedback` is the feedback.",
			fails: []string{"404", "500", "503"},
		}},
	},
	"/v1/request/{id}/feedback": {
		http.MethodPost: {access.ScopeWrite, giveFeedback, oneRecord, about{
			id: "giveFeedback", tag: "requests", summary: "Says whether an answer was good",
			body:  "Rating",
			fails: []string{"404", "500", "503"},
		}},
	},
	"/v1/request/{id}/property": {
		http.MethodPut: {access.ScopeWrite, setProperty, oneRecord, about{
			id: "setProperty", tag: "requests", summary: "Sets a property of a request",
			body: "Property", example: `{"key": "Reviewer", "value": "bo"}`,
			fails: []string{"404", "409", "500", "503"},
		}},
	},
	"/v1/user/metrics/query": {
		http.MethodPost: {access.ScopeMetrics, queryUsers, manyRecords, about{
			id: "queryUsers", tag: "users", summary: "Lists users, and what their requests add up to",
			body: "UserQuery", example: `{"sort": {"cost": "desc"}, "limit": 10}`,
			answer: warned(page(schema("UserPage"))), fails: []string{"304", "500", "504"},
		}},
	},
	"/v1/user/metrics-overview/query": {
		http.MethodPost: {access.ScopeMetrics, queryUserOverview, manyRecords, about{
			id: "queryUserOverview", tag: "users", summary: "What users cost and ask over time",
			text: "Each point is the quantile over the users of its bucket.",
			body: "UserOverviewQuery", example: `{"pSize": "p95"}`,
			answer: warned(data(schema("UserOverview"))), fails: []string{"304", "500", "504"},
		}},
	},
	"/v1/session/query": {
		http.MethodPost: {access.ScopeMetrics, querySessions, manyRecords, about{
			id: "querySessions", tag: "sessions", summary: "Lists sessions, newest first",
			text: "A session is the requests that carry the same session id and name, or with `derived` those of a tree that name none.",
			body: "SessionQuery", example: `{"search": "", "derived": true}`,
			answer: warned(page(list("Session"))), fails: []string{"304", "500", "504"},
		}},
	},
	"/v1/session/metrics/query": {
		http.MethodPost: {access.ScopeMetrics, querySessionMetrics, manyRecords, about{
			id: "querySessionMetrics", tag: "sessions", summary: "How many sessions began, how long they took and what they cost, over time",
			body: "SessionMetricsQuery", example: `{"pSize": "p95"}`,
			answer: warned(data(schema("SessionMetrics"))), fails: []string{"304", "500", "504"},
		}},
	},
	"/v1/session/tree/query": {
		http.MethodPost: {access.ScopeMetrics, querySessionTree, manyRecords, about{
			id: "querySessionTree", tag: "sessions", summary: "What the parts of one session cost, each by itself and with all beneath it",
			text: "Each node comes before those beneath it. What those at the top add up to is the session.",
			body: "SessionTreeQuery", example: `{"sessionId": "s1", "by": "path"}`,
			answer: data(list("SessionNode")), fails: []string{"304", "404", "500", "504"},
		}},
	},
	"/v1/session/{id}/feedback": {
		http.MethodPost: {access.ScopeWrite, giveSessionFeedback, oneRecord, about{
			id: "giveSessionFeedback", tag: "sessions", summary: "Says whether a session was good",
			text:  "It is the property `Service-Session-Feedback` of the first request.",
			body:  "Rating",
			fails: []string{"404", "500", "504"},
		}},
	},
	"/v1/session/{id}/tag": {
		http.MethodGet: {access.ScopeMetrics, getSessionTag, oneRecord, about{
			id: "getSessionTag", tag: "sessions", summary: "A session's tag, null without one",
			answer: data(openapi.Object{"type": []string{"string", "null"}}), fails: []string{"404", "500", "504"},
		}},
		http.MethodPost: {access.ScopeWrite, setSessionTag, oneRecord, about{
			id: "setSessionTag", tag: "sessions", summary: "Tags a session",
			body: "Tag", example: `{"tag": "gold"}`,
			fails: []string{"404", "500", "504"},
		}},
	},
	"/v1/dashboard/scores/query": {
		http.MethodPost: {access.ScopeMetrics, queryScores, manyRecords, about{
			id: "queryScores", tag: "dashboard", summary: "Scores over time",
			text: "One element for each bucket and score; buckets without one are left out.",
			body: "ScoreQuery", example: `{"timeFilter": {"start": "2026-11-01", "end": "2026-11-30"}, "dbIncrement": "week"}`,
			answer: warned(data(list("ScorePoint"))), fails: []string{"304", "500", "504"},
		}},
	},
	"/v1/metrics/query": {
		http.MethodPost: {access.ScopeMetrics, queryMetrics, manyRecords, about{
			id: "queryMetrics", tag: "dashboard", summary: "What requests add up to, over time and by group",
			text: "Counts, errors, cost, tokens and percentiles of latency: of all requests, of the period before, and of each group by bucket, empty buckets included. Sums add what is known, and are null where nothing is. Attempts that did not answer count for nothing but their cost.",
			body: "MetricsQuery", example: `{"groupBy": "model", "compare": true, "limit": 1}`,
			answer: page(schema("Metrics")), fails: []string{"304", "500", "504"},
		}},
	},
	"/v1/routes": {
		http.MethodGet: {access.ScopeMetrics, listAliases, nil, about{
			id: "listRoutes", tag: "dashboard", summary: "The gateway's aliases, the targets that they stand for, and how these are",
			text:   "How busy and how fast a target is, and whether it is at its limit, is known at each node for itself.",
			answer: data(list("Route")),
		}},
	},
	"/v1/catalog": {
		http.MethodGet: {access.ScopeMetrics, getCatalog, nil, about{
			id: "getCatalog", tag: "dashboard", summary: "The models and prices by which calls are priced now",
			text:   "A [catalogue file](https://github.com/weirhq/weir/blob/main/docs/catalog.md) with the built-in or published models, and those of the `catalog` of the Caddyfile over them. `price_version` of a record is its `version`, unless the prices have changed since.",
			answer: data(openapi.Object{"type": "object"}),
		}},
	},
	"/v1/whatif": {
		http.MethodPost: {access.ScopeMetrics, tryPolicy, aTrial, about{
			id: "tryPolicy", tag: "dashboard", summary: "What recorded calls would have cost under another policy",
			text: "Prices the recorded usage again, for other models, tiers, weights and caches, and makes no call. Lines say how many calls were read; the last one has the result: the least, the expected and the most that the calls would have cost, and what this rests on. The policy by which the calls were made gives what they have cost. Calls of which it cannot be said are counted.",
			body: "WhatIfQuery", example: `{"filter": {"request_response_rmt": {"request_model": {"equals": "smart"}}}, "policy": ["openai/gpt-5-mini"]}`,
			answer: answers("application/x-ndjson", schema("WhatIfLine")), fails: []string{"500", "504"},
		}},
	},
	"/v1/facets/query": {
		http.MethodPost: {access.ScopeMetrics, queryFacets, manyRecords, about{
			id: "queryFacets", tag: "dashboard", summary: "Which values requests have, and how often",
			text: "Attempts that did not answer count as the others do: a count is the number of records that a list with the same filter has.",
			body: "FacetQuery", example: `{"fields": ["model", "status", "property:Environment"]}`,
			answer: data(schema("Facets")), fails: []string{"304", "500", "504"},
		}},
	},
	"/v1/export": {
		http.MethodPost: {access.ScopeMetrics, exportRequests, aStream, about{
			id: "exportRequests", tag: "requests", summary: "Every request that a filter matches, as a file",
			text: "The oldest first, as they are read: JSON lines with the bodies, or a table of the metrics. A text that a spreadsheet would take for a formula begins with an apostrophe. An export that cannot go on breaks the connection.",
			body: "ExportQuery", example: `{"filter": {"request_response_rmt": {"status": {"gte": 400}}}, "format": "ndjson"}`,
			answer: exported, fails: []string{"500", "504"},
		}},
	},
	"/v1/view": {
		http.MethodGet: {access.ScopeMetrics, listViews, oneRecord, about{
			id: "listViews", tag: "dashboard", summary: "The saved views of the organisation, by name",
			answer: data(list("View")), fails: []string{"500", "504"},
		}},
	},
	"/v1/view/{name}": {
		http.MethodGet: {access.ScopeMetrics, getView, oneRecord, about{
			id: "getView", tag: "dashboard", summary: "A saved view",
			answer: data(schema("View")), fails: []string{"404", "500", "504"},
		}},
		http.MethodPut: {access.ScopeWrite, saveView, oneRecord, about{
			id: "saveView", tag: "dashboard", summary: "Saves a view, in place of an earlier one of this name",
			text: "An organisation has at most 200 views. They stay until they are deleted.",
			body: "ViewBody", example: `{"screen": "requests", "state": "f=status>=400&from=-24h"}`,
			fails: []string{"500", "504"},
		}},
		http.MethodDelete: {access.ScopeWrite, deleteView, oneRecord, about{
			id: "deleteView", tag: "dashboard", summary: "Deletes a saved view",
			fails: []string{"404", "500", "504"},
		}},
	},
	"/openapi.json": {
		http.MethodGet: {scopeNone, serveOpenAPI, nil, about{
			id: "describe", tag: "meta", summary: "This description",
			answer: answers("application/json", openapi.Object{"type": "object"}),
		}},
	},
}
