"""Three ways to make an `InputSpec`."""

import numpy as np
import paddle
from paddle.static import InputSpec
from show import message

print(InputSpec([None, 784], "float32", "x"))
print(InputSpec([None, 1], "int64", "label"))
print(InputSpec([3]))  # only the shape has to be given
print("a shape that is none:", message(lambda: InputSpec("784")))

tensor = paddle.to_tensor(np.ones([2, 2], np.float32))
print(InputSpec.from_tensor(tensor, name="x"))
print("without a name, that of the tensor:", InputSpec.from_tensor(tensor).name == tensor.name)

array = np.ones([2, 2], np.float32)
print(InputSpec.from_numpy(array, name="x"))
print("without a name:", InputSpec.from_numpy(array).name)

# Both take the sizes as they are: an export with this spec is for two rows.
spec = InputSpec.from_numpy(array, name="x")
spec.shape = (None, *spec.shape[1:])
print("any number of rows:", spec.shape)
