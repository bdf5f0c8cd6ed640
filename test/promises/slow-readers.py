"""Asks for many answers and reads none of them: slow-readers.py PORT CONNECTIONS SECONDS < REQUEST, until it is killed.

Small segments and a small window, which Node can not ask for, are what keeps the system from taking megabytes of an answer for each of them.
"""
import socket
import sys
import time

port, connections, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
request = sys.stdin.buffer.read()
held = []
for _ in range(connections):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    one.connect(("127.0.0.1", port))
    one.sendall(request)
    held.append(one)
    time.sleep(seconds / connections)
time.sleep(600)
