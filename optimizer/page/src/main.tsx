import { render } from "preact";
import { RestApi } from "./api/rest-api";
import { Page } from "./page";
import "./style.css";

const root = document.getElementById("page");
const namespace = new URLSearchParams(location.search).get("namespace") || "default";
const api = new RestApi();
if (root) {
  render(
    <Page
      api={api}
      namespace={namespace}
      onToken={(token) => {
        api.token = token;
      }}
    />,
    root,
  );
}
