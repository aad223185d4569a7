// How numbers, times and texts are shown. What is unknown is a dash, never 0.
const dash = "—";
const known = (f) => (v) => (v === null || v === undefined || Number.isNaN(v) ? dash : f(v));

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const count = known((n) => whole.format(n));
export const compact = known((n) => (Math.abs(n) < 10000 ? whole.format(n) : short.format(n)));

// dollars has as many digits as the amount needs: $12.30, $0.00420, $0.0000018.
export const dollars = known((n) => {
  if (n === 0) return "$0";
  const digits = Math.abs(n) >= 1 ? 2 : Math.min(9, 2 - Math.floor(Math.log10(Math.abs(n))));
  return (n < 0 ? "−$" : "$") + Math.abs(n).toLocaleString("en", { minimumFractionDigits: Math.min(digits, 6), maximumFractionDigits: digits });
});

// duration is of milliseconds.
export const duration = known((ms) => {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60e3) return `${(ms / 1000).toFixed(ms < 10e3 ? 2 : 1)} s`;
  if (ms < 3600e3) return `${Math.floor(ms / 60e3)} min ${Math.round((ms % 60e3) / 1000)} s`;
  return `${Math.floor(ms / 3600e3)} h ${Math.round((ms % 3600e3) / 60e3)} min`;
});

export const bytes = known((n) => (n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`));

// utc tells whether times are shown in UTC, offset is the minutes that they lie
// behind it, as Date has them.
export const utc = localStorage.getItem("utc") === "1";
export const offset = (time = Date.now()) => (utc ? 0 : new Date(time).getTimezoneOffset());
const dates = (locale, options) => new Intl.DateTimeFormat(locale, { ...options, timeZone: utc ? "UTC" : undefined });
export const zone = dates("en").resolvedOptions().timeZone;

const clock = dates("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minute = dates("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = dates("en", { month: "short", day: "numeric" });
const date = dates("en", { dateStyle: "medium" });
const full = dates("en", { dateStyle: "medium", timeStyle: "long" });

// moment is the time of day, with the day unless it is today.
export const moment = known((iso) => {
  const at = new Date(iso), time = clock.format(at);
  return date.format(at) === date.format() ? time : `${day.format(at)} ${time}`;
});
export const fullMoment = known((iso) => full.format(new Date(iso)));

// percent is of a share.
export const percent = known((share) => `${(share * 100).toFixed(share && Math.abs(share) < 0.1 ? 1 : 0)}%`);

// change is how a number compares with the one before, null where that is not known.
export const change = (now, before) => (now == null || !before ? null : now / before - 1);

// tick is a time on an axis: the day at midnight, else the time of day.
export const tick = (time) => (minute.format(time) === "00:00" ? day : minute).format(time);

export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
