import { render } from "preact";
import { RestApi } from "./api/rest-api";
import { ChatView } from "./chat-view";
import { Page } from "./page";
import { showEveryText } from "./parts/visible-text";
import { PlanPicture } from "./plans/plan-picture";
import "./style.css";

showEveryText();
const root = document.getElementById("page");
// The optimizer forbids frames, so a frame is the view of a chat.
const picture = document.getElementById("picture")?.textContent;
if (root) render(picture ? <PlanPicture text={picture} /> : view(), root);

function view() {
  return window.parent === window ? browserPage() : <ChatView />;
}

function browserPage() {
  const namespace = new URLSearchParams(location.search).get("namespace") || "default";
  const api = new RestApi();
  return (
    <Page
      api={api}
      namespace={namespace}
      onToken={(token) => {
        api.token = token;
      }}
    />
  );
}
