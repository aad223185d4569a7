package echo

// responseStream numbers the events of one response.
type responseStream struct {
	*eventWriter
	next int
}

// eventHead begins every event.
type eventHead struct {
	Type           string `json:"type"`
	SequenceNumber int    `json:"sequence_number"`
}

type lifecycleEvent struct {
	eventHead
	Response response `json:"response"`
}

type itemEvent struct {
	eventHead
	OutputIndex int        `json:"output_index"`
	Item        outputItem `json:"item"`
}

// streamResponse opens one item at a time, as OpenAI does.
func streamResponse(w *eventWriter, x *exchange, r Request, a Answer) {
	s := &responseStream{eventWriter: w}
	v := newResponse(x, r)
	items := outputItems(x, a)
	s.lifecycle("response.created", v)
	s.lifecycle("response.in_progress", v)
	for i, item := range items {
		head := s.head("response.output_item.added")
		s.event(head.Type, itemEvent{head, i, item.opening()})
		item.stream(s, i)
		head = s.head("response.output_item.done")
		s.event(head.Type, itemEvent{head, i, item})
	}
	v.finish(items, a)
	s.lifecycle("response."+v.Status, v)
	s.done() // not OpenAI's, but Open Responses demands it
}

func (s *responseStream) head(event string) eventHead {
	h := eventHead{event, s.next}
	s.next++
	return h
}

func (s *responseStream) lifecycle(event string, v response) {
	s.event(event, lifecycleEvent{s.head(event), v})
}

// outputItem is an item of a response's output.
type outputItem interface {
	// opening is the item as its stream begins: in progress and empty.
	opening() outputItem
	// stream sends what lies between the item's added and done.
	stream(s *responseStream, outputIndex int)
}

type reasoningItem struct {
	ID               string        `json:"id"`
	Type             string        `json:"type"`
	Status           string        `json:"status"`
	Summary          []summaryText `json:"summary"`
	EncryptedContent string        `json:"encrypted_content,omitempty"`
}

type summaryText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// summaryPlace is where in the response an event of a summary belongs.
type summaryPlace struct {
	ItemID       string `json:"item_id"`
	OutputIndex  int    `json:"output_index"`
	SummaryIndex int    `json:"summary_index"`
}

type summaryPartEvent struct {
	eventHead
	summaryPlace
	Part summaryText `json:"part"`
}

type summaryDeltaEvent struct {
	eventHead
	summaryPlace
	Delta string `json:"delta"`
}

type summaryDoneEvent struct {
	eventHead
	summaryPlace
	Text string `json:"text"`
}

func (i reasoningItem) opening() outputItem {
	return reasoningItem{ID: i.ID, Type: i.Type, Status: "in_progress", Summary: []summaryText{}}
}

func (i reasoningItem) stream(s *responseStream, outputIndex int) {
	for n, part := range i.Summary {
		at := summaryPlace{i.ID, outputIndex, n}
		head := s.head("response.reasoning_summary_part.added")
		s.event(head.Type, summaryPartEvent{head, at, summaryText{Type: part.Type}})
		for word := range words(part.Text) {
			head = s.head("response.reasoning_summary_text.delta")
			s.event(head.Type, summaryDeltaEvent{head, at, word})
		}
		head = s.head("response.reasoning_summary_text.done")
		s.event(head.Type, summaryDoneEvent{head, at, part.Text})
		head = s.head("response.reasoning_summary_part.done")
		s.event(head.Type, summaryPartEvent{head, at, part})
	}
}

type messageItem struct {
	ID      string       `json:"id"`
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []outputText `json:"content"`
}

type outputText struct {
	Type        string     `json:"type"`
	Annotations []struct{} `json:"annotations"`
	Logprobs    []struct{} `json:"logprobs"`
	Text        string     `json:"text"`
}

func newOutputText(text string) outputText {
	return outputText{"output_text", []struct{}{}, []struct{}{}, text}
}

// contentPlace is where in the response an event of a message's part belongs.
type contentPlace struct {
	ItemID       string `json:"item_id"`
	OutputIndex  int    `json:"output_index"`
	ContentIndex int    `json:"content_index"`
}

type contentPartEvent struct {
	eventHead
	contentPlace
	Part outputText `json:"part"`
}

type textDeltaEvent struct {
	eventHead
	contentPlace
	Delta    string     `json:"delta"`
	Logprobs []struct{} `json:"logprobs"`
}

type textDoneEvent struct {
	eventHead
	contentPlace
	Text     string     `json:"text"`
	Logprobs []struct{} `json:"logprobs"`
}

func (i messageItem) opening() outputItem {
	return messageItem{ID: i.ID, Type: i.Type, Status: "in_progress", Role: i.Role, Content: []outputText{}}
}

func (i messageItem) stream(s *responseStream, outputIndex int) {
	for n, part := range i.Content {
		at := contentPlace{i.ID, outputIndex, n}
		head := s.head("response.content_part.added")
		s.event(head.Type, contentPartEvent{head, at, newOutputText("")})
		for word := range words(part.Text) {
			head = s.head("response.output_text.delta")
			s.event(head.Type, textDeltaEvent{head, at, word, part.Logprobs})
		}
		head = s.head("response.output_text.done")
		s.event(head.Type, textDoneEvent{head, at, part.Text, part.Logprobs})
		head = s.head("response.content_part.done")
		s.event(head.Type, contentPartEvent{head, at, part})
	}
}

type callItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type argumentsDeltaEvent struct {
	eventHead
	ItemID      string `json:"item_id"`
	OutputIndex int    `json:"output_index"`
	Delta       string `json:"delta"`
}

type argumentsDoneEvent struct {
	eventHead
	ItemID      string `json:"item_id"`
	OutputIndex int    `json:"output_index"`
	Arguments   string `json:"arguments"`
}

func (i callItem) opening() outputItem {
	i.Status, i.Arguments = "in_progress", ""
	return i
}

func (i callItem) stream(s *responseStream, outputIndex int) {
	for piece := range members(i.Arguments) {
		head := s.head("response.function_call_arguments.delta")
		s.event(head.Type, argumentsDeltaEvent{head, i.ID, outputIndex, piece})
	}
	head := s.head("response.function_call_arguments.done")
	s.event(head.Type, argumentsDoneEvent{head, i.ID, outputIndex, i.Arguments})
}

// Interface guards
var (
	_ outputItem = reasoningItem{}
	_ outputItem = messageItem{}
	_ outputItem = callItem{}
)
