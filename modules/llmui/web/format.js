// How numbers, times and texts are shown. What is unknown is a dash, never 0.
const dash = "—";
const known = (f) => (v) => (v === null || v === undefined || Number.isNaN(v) ? dash : f(v));

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", minimumFractionDigits: 1, maximumFractionDigits: 1 });

export const count = known((n) => whole.format(n));
// compact has one decimal from 10,000 on, so that all numbers of a column look alike.
export const compact = known((n) => (Math.abs(n) < 10000 ? whole.format(n) : short.format(n)));

// dollars has as many digits as the amount needs: $12.30, $0.00420, $0.0000018.
export const dollars = known((n) => {
  if (n === 0) return "$0";
  const digits = Math.abs(n) >= 1 ? 2 : Math.min(9, 2 - Math.floor(Math.log10(Math.abs(n))));
  return (n < 0 ? "−$" : "$") + Math.abs(n).toLocaleString("en", { minimumFractionDigits: Math.min(digits, 6), maximumFractionDigits: digits });
});

// decimalsOf are the decimals that all amounts of a column have: as many as its largest amount
// needs to be told from others.
export function decimalsOf(amounts) {
  const top = Math.max(0, ...amounts.map((n) => Math.abs(n || 0)));
  return top >= 1 || top === 0 ? 2 : top >= 0.01 ? 4 : 6;
}

// dollarsWith has that many decimals. What is less than the last of them is not shown as nothing.
export const dollarsWith = (decimals) =>
  known((n) => {
    const size = Math.abs(n), least = 10 ** -decimals;
    if (n === 0) return "$0";
    const text = "$" + Math.max(size, least).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    return (n < 0 ? "−" : "") + (size < least / 2 ? "<" : "") + text;
  });

// duration is of milliseconds.
export const duration = known((ms) => {
  if (ms < 1000) return ms ? `${Math.round(ms)} ms` : "0 s";
  if (ms < 60e3) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3600e3) return `${Math.floor(ms / 60e3)} min ${Math.round((ms % 60e3) / 1000)} s`;
  return `${Math.floor(ms / 3600e3)} h ${Math.round((ms % 3600e3) / 60e3)} min`;
});

// unitOf is the unit in which a column has its times: that of the longest.
const units = [["ms", 1, 0, 1000], ["s", 1000, 1, 600e3], ["min", 60e3, 1, 36e6], ["h", 3600e3, 1, Infinity]];
export function unitOf(times) {
  const top = Math.max(0, ...times.map((ms) => ms || 0));
  return units.find(([, , , below]) => top < below)[0];
}

// durationIn is of milliseconds, in that unit.
export function durationIn(unit) {
  const [, size, digits] = units.find(([name]) => name === unit), least = 10 ** -digits;
  return known((ms) => (ms && ms / size < least / 2 ? "<" + least : (ms / size).toLocaleString("en", { minimumFractionDigits: ms && digits, maximumFractionDigits: digits })) + " " + unit);
}

export const bytes = known((n) => (n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`));

// utc tells whether times are shown in UTC, offset is the minutes that they lie
// behind it, as Date has them.
export const utc = localStorage.getItem("utc") === "1";
export const offset = (time = Date.now()) => (utc ? 0 : new Date(time).getTimezoneOffset());
const dates = (locale, options) => new Intl.DateTimeFormat(locale, { ...options, timeZone: utc ? "UTC" : undefined });
export const zone = dates("en").resolvedOptions().timeZone;

const clock = dates("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const exact = dates("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, timeZoneName: "short" });
const minute = dates("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = dates("en", { month: "short", day: "numeric" });
const days = dates("en", { dateStyle: "medium" });

// moment is the time of day, with the day unless it is today.
export const moment = known((iso) => {
  const at = new Date(iso), time = clock.format(at);
  return days.format(at) === days.format() ? time : `${day.format(at)} ${time}`;
});
// date is the day alone.
export const date = known((iso) => days.format(new Date(iso)));
// fullMoment has the day and the milliseconds.
export const fullMoment = known((iso) => `${days.format(new Date(iso))}, ${exact.format(new Date(iso))}`);

// minuteOf is a time in a field, to the minute. timeOf reads it, also as 2026-11-24 14:02,
// and is NaN for what is no time.
export const minuteOf = (time) => `${days.format(time)}, ${minute.format(time)}`;
export const timeOf = (text) => Date.parse(text.replaceAll(",", "") + (utc ? " UTC" : ""));

// midnight is the beginning of the day of a time, or of the nth day of its month, in the
// zone that is shown.
export function midnight(time, n) {
  const at = new Date(time);
  if (utc) return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), n ?? at.getUTCDate());
  return new Date(at.getFullYear(), at.getMonth(), n ?? at.getDate()).getTime();
}

// percent is of a share.
export const percent = known((share) => `${share < 0 ? "−" : ""}${Math.abs(share * 100).toFixed(share && Math.abs(share) < 0.1 ? 1 : 0)}%`);

// change is how a number compares with the one before, null where that is not known.
export const change = (now, before) => (now == null || !before ? null : now / before - 1);

// tick is a time on an axis: the day at midnight, else the time of day.
export const tick = (time) => (minute.format(time) === "00:00" ? day : minute).format(time);

export const plural = (n, noun, ending = "s") => `${count(n)} ${noun}${n === 1 ? "" : ending}`;
