// What the user has chosen, remembered by the browser. In cookies, since the
// page has another port each time: other stores are separate for each port,
// cookies are not. They decide nothing but the looks of the page.

const YEAR = 365 * 24 * 3600;

/** Returns the value that was chosen, if it is one of `values`, else the first of them. */
export function remembered<V extends string>(name: string, values: readonly [V, ...V[]]): V {
  const cookies = typeof document === "undefined" ? [] : document.cookie.split("; ");
  const value = cookies.find((one) => one.startsWith(`touchmark-${name}=`))?.split("=")[1];
  return values.find((known) => known === value) ?? values[0];
}

export function remember(name: string, value: string): void {
  document.cookie = `touchmark-${name}=${value}; SameSite=Strict; Path=/; Max-Age=${YEAR}`;
}
