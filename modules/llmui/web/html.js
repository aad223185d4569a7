// The few names that every component needs.
import { Component, h, render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import htm from "htm";

export const html = htm.bind(h);
export { Component, render, useEffect, useLayoutEffect, useMemo, useRef, useState };
