/** Owns: the admin listener's paths. They tell of the process alone: no upstream and no tier is asked. */
import type { FastifyInstance } from 'fastify';

export interface AdminOptions {
  /** Whether the process can serve: false while it starts or drains. */
  readonly isReady: () => boolean;
}

export function registerAdminRoutes(app: FastifyInstance, options: AdminOptions): void {
  app.get('/healthz', () => ({ status: 'ok' }));
  app.get('/readyz', (_request, reply) => {
    const isReady = options.isReady();
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ready' : 'not ready' });
  });
}
