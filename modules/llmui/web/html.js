// The few names that every component needs.
import { h, render, Fragment } from "preact";
import { useEffect, useMemo, useRef, useState, useCallback } from "preact/hooks";
import htm from "htm";

export const html = htm.bind(h);
export { render, Fragment, useEffect, useMemo, useRef, useState, useCallback };
