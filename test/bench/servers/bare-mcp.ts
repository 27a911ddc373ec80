/** What the protocol's own library costs: its server with one tool that does nothing, on Node's HTTP server, without a panel. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

import { createMcpHandler, Server } from '@modelcontextprotocol/server';

import { asChild } from './child.ts';

asChild(async (name: string) => {
    const handler = createMcpHandler(() => {
        const server = new Server({ name: 'bare', version: '1' }, { capabilities: { tools: {} } });
        server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text', text: name }] }));
        return server;
    });
    const http = createServer((request, response) => {
        void (async () => {
            const answer = await handler.fetch(
                new Request('http://bare.test/mcp', {
                    method: 'POST',
                    headers: request.headers as Record<string, string>,
                    body: await text(request)
                })
            );
            const body = await answer.text();
            response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(body);
        })();
    });
    await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
    return (http.address() as AddressInfo).port;
});
