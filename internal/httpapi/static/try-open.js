// Shows the API of this server, and asks no other one.
Scalar.createApiReference("#reference", {
  url: "/openapi.json",
  telemetry: false,
  withDefaultFonts: false,
  proxyUrl: "",
  hideClientButton: true,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
  persistAuth: false,
  authentication: { preferredSecurityScheme: "key" },
  documentDownloadType: "direct",
});
