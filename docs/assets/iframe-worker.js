// Search without a server: a browser starts no Worker for a page of the disk (file://), so an iframe runs its script.
// Material for MkDocs' plugin `offline` asks for such a script; this one needs no network.
(() => {
  if (location.protocol !== "file:") return;

  class IframeWorker extends EventTarget {
    constructor(url) {
      super();
      this.iframe = document.createElement("iframe");
      this.iframe.hidden = true;
      document.body.append(this.iframe);
      this.inside = this.iframe.contentWindow;
      this.ready = new Promise((resolve) => { this.inside.parentIsReady = resolve; });
      this.inside.answerParent = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      const source = this.inside.document;
      source.open();
      source.write(
        "<script>const postMessage = (data) => answerParent(data);" +
        "function importScripts(...urls) {" +
        "  return Promise.all(urls.map((url) => new Promise((resolve, reject) => {" +
        "    const script = document.createElement('script');" +
        "    script.src = url; script.onload = resolve; script.onerror = reject; document.body.append(script);" +
        "  })));" +
        "}</" + "script>" +
        `<script src="${url}" onload="parentIsReady()"></` + "script>"
      );
      source.close();
    }

    postMessage(data) {
      this.ready.then(() => {
        const event = new MessageEvent("message", { data });
        this.inside.dispatchEvent(event);
        if (this.inside.onmessage) this.inside.onmessage(event);
      });
    }

    terminate() {
      this.iframe.remove();
    }
  }

  window.Worker = IframeWorker;
})();
