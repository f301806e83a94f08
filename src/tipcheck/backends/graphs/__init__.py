"""Makes one kind of graph from every kind of program: PIR, the older format, ONNX, TensorRT.

Comes in: what a framework printed or wrote. Goes out: ``Graph`` and where its values come from.
"""
