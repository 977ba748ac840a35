import { render } from "preact";
import { App } from "./app.js";
import { start } from "./live.js";
import { listen } from "./router.js";
import { setTheme, theme } from "./theme.js";

setTheme(theme.peek());
listen();
render(<App />, document.getElementById("app")!);
void start();
