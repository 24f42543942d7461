/** Owns: the dashboard, one page without anything from outside; it shows what `/cache` tells. */
export const dashboardPage = '<!doctype html><title>mcp-cache-gateway</title>';
