// What a reader thinks of an answer: a rating, scores and a comment. They are sent when
// there was time to take them back.
import { html, useEffect, useRef, useState } from "../html.js";
import { post, put, remove } from "../api.js";
import { Menu } from "./basics.js";

const feedback = "service-score-feedback"; // the rating as a score
const patience = 5e3; // milliseconds

export function Rating({ r }) {
  const [rating, setRating] = useState(r.feedback_rating);
  const [scores, setScores] = useState(r.scores || {});
  const [comment, setComment] = useState(r.properties.Comment || "");
  const known = useRef(comment); // what the API has: a comment of somebody else is not replaced unseen
  const [said, setSaid] = useState(null); // what waits: {text, undo}
  const [error, setError] = useState("");
  const waiting = useRef(null);
  // settle sends what waits, also when the drawer is left.
  const settle = () => {
    if (!waiting.current) return;
    clearTimeout(waiting.current.timer);
    const { send } = waiting.current;
    waiting.current = null;
    send().then(() => setError(""), (failure) => setError(failure.message));
    setSaid(null);
  };
  const hold = (text, send, undo) => {
    settle();
    waiting.current = { send, timer: setTimeout(settle, patience) };
    setSaid({ text, undo });
  };
  const takeBack = () => {
    clearTimeout(waiting.current.timer);
    waiting.current = null;
    said.undo();
    setSaid(null);
  };
  useEffect(() => {
    addEventListener("pagehide", settle);
    return () => (removeEventListener("pagehide", settle), settle());
  }, []);
  const at = `/v1/request/${r.request_id}`;
  // rate says whether the answer is good. What is said already is taken back.
  const rate = (good) => {
    const before = rating, same = rating === good;
    setRating(same ? null : good);
    hold(same ? "Rating removed" : good ? "Rated good" : "Rated bad", () => (same ? remove(`${at}/score/${feedback}`) : post(at + "/feedback", { rating: good })), () => setRating(before));
  };
  const unscore = (name) => {
    const { [name]: _, ...rest } = scores;
    setScores(rest);
    hold(`Removed ${name}`, () => remove(`${at}/score/${encodeURIComponent(name)}`), () => setScores(scores));
  };
  const score = (e) => {
    e.preventDefault();
    const { name, value } = e.target.elements, key = name.value.trim(), n = Number(value.value), before = scores;
    setScores({ ...scores, [key]: n });
    hold(`Scored ${key}`, () => post(at + "/score", { scores: { [key]: n } }), () => setScores(before));
    e.target.reset();
  };
  const remark = (e) => {
    e.preventDefault();
    const text = e.target.elements.comment.value.trim(), before = comment;
    setComment(text);
    hold("Commented", () => put(at + "/property", { key: "Comment", value: text, expected: known.current }).then(() => (known.current = text)), () => setComment(before));
  };
  return html`<div class="rating"><span class="feedback" role="group" aria-label="Feedback"><button class="quiet" aria-pressed=${rating === true} aria-label="+1, a good answer" onClick=${() => rate(true)}>+1</button><button class="quiet" aria-pressed=${rating === false} aria-label="−1, a bad answer" onClick=${() => rate(false)}>−1</button></span>
    <form class="remark" onSubmit=${remark}><input name="comment" aria-label="Comment" placeholder="comment, then Enter" maxlength="4000" dir="auto" value=${comment} /></form>
    <${Menu} label="Score"><form class="saved" onSubmit=${score}><input name="name" aria-label="Name of the score" placeholder="name" required maxlength="200" /><input name="value" aria-label="Value" type="number" step="any" required /><button>Save</button></form>
      ${Object.entries(scores).filter(([name]) => name !== feedback).map(([name, value]) => html`<div class="saved" key=${name}><span class="quiet">${name}: ${value}</span><button class="quiet" aria-label=${`Remove the score ${name}`} onClick=${() => unscore(name)}>×</button></div>`)}<//>
    ${said && html`<span role="status">${said.text}. <button onClick=${takeBack}>Undo</button></span>`}
    ${error && html`<span class="bad" role="alert">${error}</span>`}</div>`;
}
