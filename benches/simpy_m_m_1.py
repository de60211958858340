"""The queue of `cargo bench --bench event m_m_1` in SimPy (pip install simpy), to be run beside it.

Events per second of CPU time, counted alike: an arrival and a departure for each customer.
"""

import random
import time

import simpy

CUSTOMERS = 250_000


def customer(env, server, waits, draws):
    arrived = env.now
    with server.request() as turn:
        yield turn
        waits.append(env.now - arrived)
        yield env.timeout(draws.expovariate(1 / 0.8))


def source(env, server, waits, draws):
    for _ in range(CUSTOMERS):
        env.process(customer(env, server, waits, draws))
        yield env.timeout(draws.expovariate(1.0))


def main():
    env, waits, draws = simpy.Environment(), [], random.Random(1)
    env.process(source(env, simpy.Resource(env, 1), waits, draws))
    begun = time.process_time()
    env.run()
    seconds = time.process_time() - begun
    rate = 2 * CUSTOMERS / seconds / 1e6
    print(f"SimPy {simpy.__version__}: {rate:.3f} M events/s, mean wait {sum(waits) / len(waits):.3f} (theory: 3.2)")


main()
